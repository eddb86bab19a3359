//! What becomes of shaders: of each compute entry point in the files named, whether it is read,
//! translated and verified; with `--check` what the checkers find on inputs that are made up; and with
//! `--run` whether the processor, the GPU, and the GPU's driver without Invar compute the same.
//! `scripts/corpora.sh` runs it on folders.
//!
//! Each file has a process of its own, so that a shader that ends one is told and others go on. The exit
//! code is 1 if one did, or if results differ.

mod direct;
mod entry;
mod inputs;

use std::collections::BTreeMap;
use std::process::Command;

use entry::Stages;

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
                for line in args.by_ref().flat_map(|file| entry::census(&file, stages)) {
                    say(&line);
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
    match command.arg("--one").arg(file).output() {
        Err(error) => crashed(error.to_string()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().last().unwrap_or_default().to_string();
                lines.extend(crashed(format!("{}: {said}", output.status)));
            }
            lines
        }
    }
}

fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}
