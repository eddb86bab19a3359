//! What becomes of shaders: of each compute entry point in the files named, whether it is read,
//! translated and verified; with `--check` what the checkers find on inputs that are made up; and with
//! `--run` whether the processor, the GPU, and the GPU's driver without Invar compute the same; of those with
//! textures also whether the WGSL does that Invar writes of them.
//! `scripts/corpora.sh` runs it on folders.
//!
//! Each file has a process of its own, so that a shader that ends one is told and others go on. The exit
//! code is 1 if one did, or if results differ.

mod direct;
mod entry;
mod inputs;
mod written;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use entry::Stages;

/// How long a file may take: a GPU that is busy without end cannot be stopped otherwise.
const TIME_LIMIT: Duration = Duration::from_secs(180);
/// How often is looked whether a file is done.
const LOOK: Duration = Duration::from_millis(10);

fn main() {
    let mut stages = Stages::default();
    let mut files = Vec::new();
    let mut lines = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--check" => stages.check = true,
            "--run" => stages.run = true,
            "--lines" => lines = true,
            // One file, in this process.
            "--one" => {
                for file in args.by_ref() {
                    entry::census(&file, stages, &mut |line| say(&line));
                }
                return;
            }
            // The names stand in a file, one a line.
            "--files" => match args.next().map(std::fs::read_to_string) {
                Some(Ok(list)) => files.extend(list.lines().map(str::to_string)),
                Some(Err(_)) | None => {
                    say("--files needs a file of names");
                    std::process::exit(2);
                }
            },
            file => files.push(file.to_string()),
        }
    }
    let mut table: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut wrong = false;
    for file in files {
        for line in in_own_process(&file, stages) {
            let mut parts = line.split('\t').skip(2);
            let key = (
                parts.next().unwrap_or_default().to_string(),
                parts.next().unwrap_or_default().to_string(),
            );
            wrong |= key.1 == "crashed" || key.1 == "differs";
            *table.entry(key).or_default() += 1;
            if lines {
                say(&line);
            }
        }
    }
    for ((stage, outcome), count) in table {
        say(&format!("{count:6} {}: {outcome}", &stage[2..]));
    }
    if wrong {
        std::process::exit(1);
    }
}

fn in_own_process(file: &str, stages: Stages) -> Vec<String> {
    let crashed = |why: String| vec![format!("{file}\t*\t0 read\tcrashed\t{why}")];
    let myself = match std::env::current_exe() {
        Ok(myself) => myself,
        Err(error) => return crashed(error.to_string()),
    };
    let mut command = Command::new(myself);
    if stages.check {
        command.arg("--check");
    }
    if stages.run {
        command.arg("--run");
    }
    let command = command.arg("--one").arg(file).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return crashed(error.to_string()),
    };
    let output = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let lines = output.map(|o| BufReader::new(o).lines().map_while(Result::ok).collect());
        lines.unwrap_or_default()
    });
    let start = Instant::now();
    let end = loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break None,
            Ok(Some(status)) => break Some(crashed(status.to_string())),
            Ok(None) if start.elapsed() < TIME_LIMIT => std::thread::sleep(LOOK),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                break Some(vec![format!("{file}\t*\t0 read\tout of time\t")]);
            }
            Err(error) => break Some(crashed(error.to_string())),
        }
    };
    let mut lines: Vec<String> = reader.join().unwrap_or_default();
    lines.extend(end.unwrap_or_default());
    lines
}

fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}
