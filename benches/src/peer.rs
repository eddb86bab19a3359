//! Peers: processes that run a kernel once for each line that they are sent, and say how long it took;
//! so the two sides of a row take turns. First they say the checksum of what their kernel wrote.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Whose kernel it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    C,
    Blas,
    OpenCl,
    Numba,
}

/// The programs of the peers that this machine has.
pub struct Peers {
    folder: PathBuf,
    c: Result<PathBuf, String>,
    opencl: Result<PathBuf, String>,
    python: Option<PathBuf>,
    has_numba: bool,
    threads: String,
}

impl Peers {
    /// Compiles what must be compiled.
    pub fn build(benches: &Path, threads: &str) -> Peers {
        let python = benches.join("../target/bench-python/bin/python");
        let imports = |module: &str| {
            let mut command = Command::new(&python);
            command.args(["-c", &format!("import {module}")]);
            command.output().is_ok_and(|out| out.status.success())
        };
        Peers {
            folder: benches.join("peers/cpu"),
            c: build(benches, c_peers),
            opencl: build(benches, opencl_peer),
            has_numba: imports("numba"),
            python: imports("numpy").then_some(python),
            threads: threads.to_string(),
        }
    }

    /// Why rows of these kinds are left out.
    pub fn missing(&self, kinds: &[Kind]) -> Vec<String> {
        let missing = |kind: &Kind| {
            let (peer, why) = match kind {
                Kind::C => ("C", self.c.as_ref().err()?.as_str()),
                Kind::OpenCl => ("PoCL", self.opencl.as_ref().err()?.as_str()),
                Kind::Blas if self.python.is_none() => {
                    ("OpenBLAS", "scripts/bench.sh installs NumPy")
                }
                Kind::Numba if !self.has_numba => ("Numba", "scripts/bench.sh installs it"),
                Kind::Blas | Kind::Numba => return None,
            };
            Some(format!("rows against {peer} are left out: {why}"))
        };
        kinds.iter().filter_map(missing).collect()
    }

    /// What runs a kernel, if this machine has it.
    pub fn command(&self, kind: Kind, kernel: &str, size: usize) -> Option<Command> {
        let script = |name: &str| {
            let mut command = Command::new(self.python.as_ref()?);
            command.arg(self.folder.join(name));
            Some(command)
        };
        let mut command = match kind {
            Kind::C => Command::new(self.c.as_ref().ok()?),
            Kind::OpenCl => Command::new(self.opencl.as_ref().ok()?),
            Kind::Blas => script("blas.py")?,
            Kind::Numba if self.has_numba => script("numba_peer.py")?,
            Kind::Numba => return None,
        };
        command.args([kernel, &size.to_string()]);
        if kind == Kind::OpenCl {
            command.arg(self.folder.join("kernels.cl"));
        }
        for name in [
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "NUMBA_NUM_THREADS",
            "POCL_MAX_PTHREAD_COUNT",
        ] {
            command.env(name, &self.threads);
        }
        command.env("OMP_WAIT_POLICY", "passive");
        // After a pause Linux may wake OpenMP's threads on one processor, and they would take turns.
        command.env("OMP_PROC_BIND", "true");
        Some(command)
    }
}

fn build(
    benches: &Path,
    compile: fn(&Path, &Path) -> Result<PathBuf, String>,
) -> Result<PathBuf, String> {
    let out = benches.join("../target/bench-peers");
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    compile(&benches.join("peers/cpu"), &out)
}

/// Runs gcc. That `sqrt` sets no `errno` changes no result, and lets it be a vector instruction.
fn gcc(args: &[&str], inputs: &[PathBuf], output: &Path, library: &str) -> Result<(), String> {
    let mut command = Command::new("gcc");
    command.args(["-march=native", "-fopenmp", "-fno-math-errno"]);
    command
        .args(args)
        .args(inputs)
        .arg("-o")
        .arg(output)
        .arg(library);
    let done = command.output().map_err(|e| format!("gcc: {e}"))?;
    if done.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&done.stderr).into_owned())
    }
}

/// Without fast-math, except where a row names libmvec.
fn c_peers(source: &Path, out: &Path) -> Result<PathBuf, String> {
    let (exp_sin, peers) = (out.join("exp_sin.o"), out.join("peers"));
    gcc(
        &["-Ofast", "-c"],
        &[source.join("exp_sin.c")],
        &exp_sin,
        "-lm",
    )?;
    gcc(&["-O3"], &[source.join("peers.c"), exp_sin], &peers, "-lm")?;
    Ok(peers)
}

fn opencl_peer(source: &Path, out: &Path) -> Result<PathBuf, String> {
    let program = out.join("opencl");
    gcc(&["-O3"], &[source.join("opencl.c")], &program, "-lOpenCL")?;
    // It says so where PoCL is missing.
    let mut command = Command::new(&program);
    command
        .args(["saxpy", "4096"])
        .arg(source.join("kernels.cl"));
    let done = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    if done.status.success() {
        Ok(program)
    } else {
        Err(String::from_utf8_lossy(&done.stderr).trim().to_string())
    }
}

/// A running peer.
pub struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts it; what it says first is the checksum.
    pub fn start(mut command: Command) -> Result<Peer, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the peer has no pipes".to_string());
        };
        Ok(Peer {
            process,
            requests,
            answers: BufReader::new(answers),
        })
    }

    /// The next number that it says.
    pub fn answer(&mut self) -> Result<f64, String> {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .map_err(|e| format!("the peer: {e}"))?;
        let number = line.trim().parse();
        number.map_err(|_| format!("the peer said `{}`, not a number", line.trim()))
    }

    /// Runs once: the seconds that it took.
    pub fn run(&mut self) -> Result<f64, String> {
        writeln!(self.requests, "run").map_err(|e| format!("the peer: {e}"))?;
        self.answer()
    }

    /// Ends it.
    pub fn end(mut self) -> Result<(), String> {
        drop(self.requests);
        let status = self.process.wait().map_err(|e| format!("the peer: {e}"))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the peer ended with {status}"))
        }
    }
}

/// xorshift32.
pub fn xorshift(seed: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(seed), |s| {
        let s = s ^ s << 13;
        let s = s ^ s >> 17;
        Some(s ^ s << 5)
    })
    .skip(1)
}

/// -1 to 1 times a scale.
pub fn numbers(seed: u32, count: usize, scale: f32) -> Vec<f32> {
    let one = |s: u32| ((s >> 8) as f32 / 8_388_608.0 - 1.0) * scale;
    xorshift(seed).take(count).map(one).collect()
}
