//! From Metal source to LLVM IR, by clang and headers of our own.
//!
//! The sources that clang reads are the rewritten ones, under the names of the user's files, by an overlay
//! over the file system; so what clang says of places is about the user's files.
//!
//! The target has `__bf16` and `_Float16`, addresses of 64 bits, and passes what is not a scalar by address, so
//! that no value is put together for an ABI. What clang might assume of foreign code it must not: races are
//! to be found, not used.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use invar_ir::diagnostic::path_text;
use invar_ir::once::Once;

use crate::bodies::{self, Body};
use crate::members;
use crate::rewrite::{self, FunctionConstant, Wanted};
use crate::spelling;
use crate::tokens::Columns;

/// Names the program, wherever it is.
const VARIABLE: &str = "INVAR_CLANG";

/// The releases that are looked for, the best known first.
const RELEASES: [u32; 4] = [19, 20, 21, 22];

/// The headers, by the names that Metal sources include them by.
const HEADERS: [(&str, &str); 7] = [
    ("invar/traits", include_str!("../headers/traits")),
    ("invar/functions", include_str!("../headers/functions")),
    ("invar/imageblocks", include_str!("../headers/imageblocks")),
    ("invar/textures", include_str!("../headers/textures")),
    ("metal_stdlib", include_str!("../headers/metal_stdlib")),
    ("simd/simd.h", include_str!("../headers/simd")),
    ("TargetConditionals.h", include_str!("../headers/targets")),
];

/// Other names of the whole.
const ALIASES: [&str; 26] = [
    "metal_array",
    "metal_assert",
    "metal_atomic",
    "metal_common",
    "metal_compute",
    "metal_config",
    "metal_geometric",
    "metal_geometry",
    "metal_graphics",
    "metal_integer",
    "metal_limits",
    "metal_logging",
    "metal_math",
    "metal_matrix",
    "metal_numeric",
    "metal_pack",
    "metal_pixel",
    "metal_quadgroup",
    "metal_relational",
    "metal_simdgroup",
    "metal_simdgroup_matrix",
    "metal_texture",
    "metal_type_traits",
    "metal_types",
    "metal_uniform",
    "metal_utility",
];

const FLAGS: &[&str] = &[
    "-x",
    "c++",
    "-std=c++20",
    "--target=nvptx64-nvidia-cuda",
    "-ffreestanding",
    "-nostdlibinc",
    "-O2",
    "-Xclang",
    "-disable-llvm-passes",
    "-g",
    "-Xclang",
    "-debug-info-kind=standalone",
    "-fno-discard-value-names",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fwrapv",
    "-fno-strict-float-cast-overflow",
    "-fno-builtin",
    "-fno-delete-null-pointer-checks",
    "-fno-finite-loops",
    "-fno-threadsafe-statics",
    "-ftrivial-auto-var-init=zero",
    "-Wno-everything",
    // Integers of 64 bits are `long` and `ulong` by every name, as Metal has them.
    "-D__INT64_TYPE__=long int",
    "-D__UINT64_TYPE__=long unsigned int",
    "-D__INTMAX_TYPE__=long int",
    "-D__UINTMAX_TYPE__=long unsigned int",
    "-D__INT64_C_SUFFIX__=L",
    "-D__UINT64_C_SUFFIX__=UL",
    "-D__INTMAX_C_SUFFIX__=L",
    "-D__UINTMAX_C_SUFFIX__=UL",
    // What has no value in C++: LLVM would leave out what is made of it.
    // A warning, since an array of one stands for one of any length.
    "-Warray-bounds",
    "-Werror=division-by-zero",
    "-Werror=return-type",
    "-Werror=shift-count-negative",
    "-Werror=shift-count-overflow",
    // Variables that certainly have none; those that may have none begin at 0.
    "-Werror=uninitialized",
    "-Wno-sometimes-uninitialized",
    "-Wno-uninitialized-const-reference",
    "-fno-diagnostics-show-option",
    "-ferror-limit=200",
    "-fno-elide-type",
    "-ftemplate-backtrace-limit=0",
    "-fno-caret-diagnostics",
    "-fno-color-diagnostics",
    "-emit-llvm",
    "-c",
];

/// How the sentence about a function constant begins whose value its type does not hold.
pub(crate) const CONSTANT: &str = "the function constant ";

/// How the sentence about functions begins that the compiler cannot tell from each other.
pub(crate) const OVERLOADS: &str = "address spaces alone distinguish";

/// How the sentence about a specialisation begins that the compiler takes for addresses of other spaces too.
pub(crate) const SPECIALISATION: &str = "the specialisation ";

/// How the sentence about what is given to a logger and is no number begins.
const LOGGING: &str = "logging takes ";

/// What a source says and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Request<'a> {
    /// The file's name, whether it is there or not.
    pub name: &'a str,
    pub text: &'a str,
    /// Folders of files that are included.
    pub includes: &'a [PathBuf],
    /// Macros, as NAME or NAME=VALUE.
    pub defines: &'a [String],
    pub constants: &'a HashMap<String, String>,
    pub kernel: Option<&'a str>,
}

/// A file that clang read.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// As it is to be shown.
    pub name: String,
    pub text: String,
    pub columns: Columns,
}

/// What clang made of a source.
pub(crate) struct Compiled {
    pub ir: Vec<u8>,
    /// The user's files, by the names that debug information has.
    pub files: HashMap<String, File>,
    pub constants: Vec<FunctionConstant>,
    /// Whether it read no file but those, headers of our own and its own.
    pub knows_files: bool,
    /// What is wrong in bodies that were left out, by their numbers.
    pub refusals: Vec<Refusal>,
}

/// What is wrong in the body of a function.
pub(crate) struct Refusal {
    pub complaints: Vec<Complaint>,
    /// The files that it speaks of, as they were compiled.
    pub files: Arc<HashMap<String, File>>,
}

/// What clang found wrong: a file, line and column, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub message: String,
    /// What the user's line asks for that has it in it, if it is in a header of the library; or the first reason why
    /// what the line does is none of what there is.
    pub within: String,
    /// What clang notes about places of the user's files: functions that are not the one that is called.
    pub notes: Vec<Note>,
    /// The places of the user's files that asked for what it is in, the innermost first.
    asked: Vec<Place>,
}

/// A file, line and column.
type Place = (String, u32, u32);

/// A place in a file, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub message: String,
}

/// Why there is no IR.
pub(crate) enum Failure {
    /// Nothing of the source.
    Other(String),
    /// What clang says, and the files that it speaks of.
    Source(Vec<Complaint>, Arc<HashMap<String, File>>),
}

/// The program, or a sentence that says what to install.
///
/// # Errors
/// There is none.
pub fn find() -> Result<PathBuf, String> {
    found().clone().map(|(program, _)| program)
}

/// The program, and what it says of itself.
pub(crate) fn found() -> &'static Result<(PathBuf, String), String> {
    static FOUND: Once<Result<(PathBuf, String), String>> = Once::new();
    FOUND.get_or_make(look_for)
}

fn look_for() -> Result<(PathBuf, String), String> {
    let [first, .., last] = RELEASES;
    if let Some(given) = env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        return match release(&given) {
            Some((release, about)) if release >= first => Ok((PathBuf::from(given), about)),
            Some((release, _)) => Err(format!(
                "the environment's {VARIABLE} names clang {release}: Metal sources need clang {first} or newer"
            )),
            None => Err(format!(
                "the environment's {VARIABLE} names no clang that runs ({}): give the program's path, or unset it",
                path_text(Path::new(&given))
            )),
        };
    }
    let numbered = RELEASES.map(|n| OsString::from(format!("clang-{n}")));
    let brew = RELEASES.map(|n| OsString::from(format!("/opt/homebrew/opt/llvm@{n}/bin/clang")));
    let plain = [OsString::from("clang")];
    for name in numbered.into_iter().chain(brew).chain(plain) {
        if let Some((release, about)) = release(&name)
            && (first..=last).contains(&release)
        {
            return Ok((PathBuf::from(name), about));
        }
    }
    Err(format!(
        "Metal sources need clang {first} or newer, which was not found: install it (Debian and Ubuntu: clang-{first}, \
         Fedora and Arch: clang, Homebrew: llvm@{first}), or give its path in {VARIABLE}"
    ))
}

/// The release of a clang, and all that it says; Apple's, whose numbers are others, is none.
fn release(program: &OsString) -> Option<(u32, String)> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if text.starts_with("Apple") {
        return None;
    }
    let (_, rest) = text.split_once("clang version ")?;
    let release = rest.split('.').next()?.trim().parse().ok()?;
    Some((release, text.into_owned()))
}

/// Compiles a source, of which [`sources`] are what it and its files say. Bodies of functions in which something is
/// wrong are left out.
pub(crate) fn compile(request: &Request, mut sources: Sources) -> Result<Compiled, Failure> {
    let workshop = Workshop::open()?;
    let mut refusals: Vec<Refusal> = Vec::new();
    let mut first = None;
    for round in 0..ROUNDS {
        let complaints = match workshop.run(request, &sources)? {
            Made::Ir { ir, knows_files } => {
                return Ok(Compiled {
                    ir,
                    knows_files,
                    files: sources.files,
                    constants: sources.constants,
                    refusals,
                });
            }
            Made::Nothing(complaints) => complaints,
        };
        let files = Arc::new(sources.files.clone());
        let of_bodies = sources.of_bodies(&complaints, round < ROUNDS_FOR_CALLERS);
        first.get_or_insert((complaints, files.clone()));
        let Some(of_bodies) = of_bodies else {
            break;
        };
        for ((file, body), complaints) in of_bodies {
            sources.leave_out(&file, body, refusals.len());
            let files = files.clone();
            refusals.push(Refusal { complaints, files });
        }
        sources.rewrite_rest(request);
    }
    // What is wrong at first is what the author is to change.
    let (mut complaints, files) = first.unwrap_or_default();
    complaints.truncate(TOLD);
    Err(Failure::Source(complaints, files))
}

/// How often bodies are left out: what is wrong in one may hide what is in another.
const ROUNDS: usize = 12;

/// So often who asks for an instance of a template is left out; then the template, which all may ask for.
const ROUNDS_FOR_CALLERS: usize = 4;

/// So much is told of a source that is wrong as a whole.
const TOLD: usize = 20;

/// What a run of clang made.
enum Made {
    Ir { ir: Vec<u8>, knows_files: bool },
    Nothing(Vec<Complaint>),
}

/// A clang, and a folder with the headers.
struct Workshop {
    clang: PathBuf,
    folder: tempfile::TempDir,
    headers: PathBuf,
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, text))
        .map_err(|e| Failure::Other(format!("{}: {e}", path_text(path))))
}

impl Workshop {
    fn open() -> Result<Workshop, Failure> {
        let clang = find().map_err(Failure::Other)?;
        let folder = tempfile::Builder::new()
            .prefix("invar-msl-")
            .tempdir()
            .map_err(|e| Failure::Other(format!("no temporary folder: {e}")))?;
        let headers = folder.path().join("include");
        for (name, text) in HEADERS {
            write(&headers.join(name), text)?;
        }
        for name in ALIASES.iter().chain(&["metal_imageblocks"]) {
            write(&headers.join(name), "#include <metal_stdlib>\n")?;
        }
        for name in [
            "base",
            "types",
            "vector",
            "vector_types",
            "matrix",
            "matrix_types",
            "packed",
        ] {
            write(
                &headers.join(format!("simd/{name}.h")),
                "#include <simd/simd.h>\n",
            )?;
        }
        Ok(Workshop {
            clang,
            folder,
            headers,
        })
    }

    fn run(&self, request: &Request, sources: &Sources) -> Result<Made, Failure> {
        let Workshop {
            clang,
            folder,
            headers,
        } = self;
        let mut roots = Vec::new();
        for (number, source) in sources.rewritten.iter().enumerate() {
            let path = folder.path().join(format!("source-{number}"));
            write(&path, &source.1)?;
            roots.push(format!(
                "{{\"type\": \"file\", \"name\": {}, \"external-contents\": {}}}",
                json(&source.0),
                json(&path.to_string_lossy())
            ));
        }
        let overlay = folder.path().join("overlay.json");
        write(
            &overlay,
            &format!(
                "{{\"version\": 0, \"use-external-names\": false, \"roots\": [{}]}}",
                roots.join(", ")
            ),
        )?;
        let ir = folder.path().join("kernels.bc");
        let mut command = Command::new(clang);
        command.args(FLAGS);
        command.arg("-isystem").arg(headers);
        command.arg("-ivfsoverlay").arg(&overlay);
        for include in request.includes {
            command.arg("-I").arg(include);
        }
        if let Some(kernel) = request.kernel {
            command.arg(format!("-DINVAR_WANTED={}", json(kernel)));
        }
        for define in request.defines {
            command.arg(format!("-D{define}"));
        }
        // The driver looks for its input where the overlay is not seen, so the source is included.
        let main = absolute(Path::new(request.name));
        let start = folder.path().join("start");
        write(
            &start,
            // The language's own words and types need no header there.
            &format!(
                "#define INVAR_SWIZZLES {}\n#include <metal_stdlib>\n#include {}\n",
                swizzles(&sources.members),
                json(&main.to_string_lossy())
            ),
        )?;
        let read = folder.path().join("read");
        command.arg("-MD").arg("-MF").arg(&read);
        command.arg("-o").arg(&ir).arg(&start);
        let Output { status, stderr, .. } = command
            .output()
            .map_err(|e| Failure::Other(format!("{}: {e}", path_text(clang))))?;
        let text = String::from_utf8_lossy(&stderr);
        let mut complaints = complaints(&text, &sources.files, headers);
        // What is open at the end of all is so at the end of the source.
        for complaint in &mut complaints {
            if Path::new(&complaint.file) == start {
                let text = request.text.trim_end();
                complaint.file = main.to_string_lossy().into_owned();
                complaint.line = text.lines().count().max(1) as u32;
                complaint.column = u32::MAX;
                complaint.within = "the source ends here".to_string();
            }
        }
        if !status.success() || !complaints.is_empty() {
            if complaints.is_empty() {
                let why = text.trim();
                return Err(Failure::Other(format!(
                    "{} failed: {why}",
                    path_text(clang)
                )));
            }
            return Ok(Made::Nothing(complaints));
        }
        let ir = fs::read(&ir).map_err(|e| Failure::Other(format!("{}: {e}", path_text(&ir))))?;
        let own = Command::new(clang).arg("-print-resource-dir").output();
        let own = own.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
        let own = own.ok().filter(|own| !own.is_empty());
        let is_known = |file: &String| {
            let path = Path::new(file);
            let key = absolute(path).to_string_lossy().into_owned();
            path.starts_with(folder.path())
                || own.as_ref().is_some_and(|own| path.starts_with(own))
                || sources.files.contains_key(&key)
        };
        let read = fs::read(&read).unwrap_or_default();
        let read = dependencies(&String::from_utf8_lossy(&read));
        Ok(Made::Ir {
            ir,
            knows_files: !read.is_empty() && read.iter().all(is_known),
        })
    }
}

/// The user's files, as they are and as clang gets them.
pub(crate) struct Sources {
    /// Paths and texts for clang.
    pub rewritten: Vec<(String, String)>,
    pub files: HashMap<String, File>,
    constants: Vec<FunctionConstant>,
    macros: HashMap<String, i64>,
    /// Members that are called like several components of a vector.
    members: BTreeSet<String>,
    /// The bodies that are left out, by files, and their numbers.
    left_out: HashMap<String, Vec<(Body, usize)>>,
}

impl Sources {
    /// The complaints by the bodies that they are in, if each is in one that is there: in that of who asks for an
    /// instance of a template, or in the template's.
    #[expect(
        clippy::type_complexity,
        reason = "a list of pairs of a body and what is wrong in it"
    )]
    fn of_bodies(
        &self,
        complaints: &[Complaint],
        of_callers: bool,
    ) -> Option<Vec<((String, Body), Vec<Complaint>)>> {
        let mut known: HashMap<&str, Vec<Body>> = HashMap::new();
        let mut all: Vec<((String, Body), Vec<Complaint>)> = Vec::new();
        for complaint in complaints {
            let own = (complaint.file.clone(), complaint.line, complaint.column);
            let mut places: Vec<&Place> = std::iter::once(&own).chain(&complaint.asked).collect();
            if of_callers {
                places.reverse();
            }
            let found = places.iter().find_map(|(path, line, column)| {
                let (path, file) = self.files.get_key_value(path)?;
                let bodies = known
                    .entry(path)
                    .or_insert_with(|| bodies::bodies(&file.text));
                let place = (*line, file.columns.written(*line, *column).0);
                let body = bodies.iter().find(|body| body.has(place))?;
                let is_there = |(other, _): &(Body, usize)| other != body;
                let is_there = self
                    .left_out
                    .get(path)
                    .is_none_or(|all| all.iter().all(is_there));
                is_there.then(|| (path.clone(), body.clone()))
            })?;
            match all.iter_mut().find(|(body, _)| *body == found) {
                Some((_, complaints)) => complaints.push(complaint.clone()),
                None => all.push((found, vec![complaint.clone()])),
            }
        }
        Some(all)
    }

    fn leave_out(&mut self, file: &str, body: Body, number: usize) {
        let all = self.left_out.entry(file.to_string()).or_default();
        all.push((body, number));
    }

    /// Rewrites the files of which something is left out.
    fn rewrite_rest(&mut self, request: &Request) {
        let wanted = Wanted {
            kernel: request.kernel,
            constants: request.constants,
            macros: &self.macros,
            members: &self.members,
        };
        for (path, text) in &mut self.rewritten {
            if let (Some(left_out), Some(file)) =
                (self.left_out.get(path), self.files.get_mut(path))
            {
                let read = rewrite::rewrite(&file.text, &wanted, left_out);
                *text = read.text;
                file.columns = read.columns;
            }
        }
    }
}

/// The source and what it includes of the user's, rewritten.
pub(crate) fn sources(request: &Request) -> Sources {
    let main = absolute(Path::new(request.name));
    let mut open = vec![(main, request.name.to_string(), request.text.to_string())];
    let mut found: Vec<(String, String, String)> = Vec::new();
    let (mut macros, mut members) = (HashMap::new(), BTreeSet::new());
    while let Some((path, name, text)) = open.pop() {
        let key = path.to_string_lossy().into_owned();
        if found.iter().any(|(known, ..)| *known == key) {
            continue;
        }
        // Files are shown as the user names the one that includes them.
        let folder = Path::new(&name).parent().map(Path::to_path_buf);
        let folder = folder.unwrap_or_default();
        let folders = || std::iter::once(&folder).chain(request.includes);
        for included in rewrite::includes(&text) {
            let file = folders().map(|f| f.join(&included)).find(|p| p.is_file());
            if let Some(file) = file
                && let Ok(bytes) = fs::read(&file)
            {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let name = file.to_string_lossy().into_owned();
                open.push((absolute(&file), name, text));
            }
        }
        rewrite::macros(&text, &mut macros);
        members::names(&text, &mut members);
        found.push((key, name, text));
    }
    let mut all = Sources {
        rewritten: Vec::new(),
        files: HashMap::new(),
        constants: Vec::new(),
        macros,
        members,
        left_out: HashMap::new(),
    };
    let wanted = Wanted {
        kernel: request.kernel,
        constants: request.constants,
        macros: &all.macros,
        members: &all.members,
    };
    for (key, name, text) in found {
        let read = rewrite::rewrite(&text, &wanted, &[]);
        all.constants.extend(read.constants);
        all.rewritten.push((key.clone(), read.text));
        let file = File {
            name,
            text,
            columns: read.columns,
        };
        all.files.insert(key, file);
    }
    all
}

/// What a vector is given for names that a class of the source has a member of.
fn swizzles(members: &BTreeSet<String>) -> String {
    let list = members.iter().filter_map(|name| {
        let positions: Vec<String> = (members::positions(name)?.iter())
            .map(usize::to_string)
            .collect();
        Some(format!("INVAR_SWIZZLE({name}, {})", positions.join(", ")))
    });
    list.collect::<Vec<_>>().join(" ")
}

/// A path from the root, without steps back.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut out = PathBuf::new();
    for part in whole.components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            std::path::Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// The files of a rule of `make`: behind the first colon, where a space or `#` of a name has `\` before it.
fn dependencies(rule: &str) -> Vec<String> {
    let (_, files) = rule.split_once(": ").unwrap_or_default();
    let mut all = vec![String::new()];
    let mut chars = files.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) | ('\n' | ' ', _) => all.push(String::new()),
            ('\\', Some(' ' | '#')) | ('$', Some('$')) => {
                let last = all.last_mut();
                last.into_iter().for_each(|file| file.extend(chars.next()));
            }
            (c, _) => all.last_mut().into_iter().for_each(|file| file.push(c)),
        }
    }
    all.retain(|file| !file.is_empty());
    all
}

fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The errors in what clang prints: `file:line:column: error: message`. One in a header of the library is where the
/// first of the user's lines is that asks for what is there, which notes behind it say.
fn complaints(text: &str, files: &HashMap<String, File>, headers: &Path) -> Vec<Complaint> {
    let mut all: Vec<Complaint> = Vec::new();
    for line in text.lines() {
        if let Some(found) = [": fatal error: ", ": error: ", ": warning: "]
            .iter()
            .find_map(|level| note(line, level))
        {
            if is_of_any_length(&found.message) {
                continue;
            }
            all.push(Complaint {
                file: found.file,
                line: found.line,
                column: found.column,
                message: found.message,
                within: String::new(),
                notes: Vec::new(),
                asked: Vec::new(),
            });
        } else if let Some(note) = note(line, ": note: ")
            && let Some(last) = all.last_mut()
        {
            last.add(note, files);
        }
    }
    for complaint in &mut all {
        // It is asserted, of which clang says so much more.
        if complaint.message.starts_with("static assertion failed")
            && let Some(at) = [CONSTANT, OVERLOADS, SPECIALISATION, LOGGING]
                .iter()
                .find_map(|begin| complaint.message.find(begin))
        {
            complaint.message.drain(..at);
        }
        if let Ok(header) = Path::new(&complaint.file).strip_prefix(headers) {
            complaint.file = header.to_string_lossy().into_owned();
        }
    }
    let mut seen: Vec<Complaint> = Vec::new();
    all.retain(|one| {
        let is_new = !seen.contains(one);
        seen.push(one.clone());
        is_new
    });
    all
}

/// Whether what is said is that an index is beyond an array of one, as which those of any length are declared.
fn is_of_any_length(message: &str) -> bool {
    let is_beyond = message.starts_with("array index ") && message.contains(" is past the end ");
    let ty = message.rsplit('\'').nth(1).unwrap_or_default();
    is_beyond && ty.find('[').is_some_and(|at| ty[at..].starts_with("[1]"))
}

impl Complaint {
    /// Takes what clang notes of it, if that says more.
    fn add(&mut self, note: Note, files: &HashMap<String, File>) {
        let is_users = files.contains_key(&note.file);
        if is_users && asked_for(&note.message).is_some() {
            self.asked.push((note.file.clone(), note.line, note.column));
        }
        if !files.contains_key(&self.file) {
            if is_users && note.message.starts_with("to match this ") {
                self.notes.push(note);
            } else if is_users && let Some(within) = asked_for(&note.message) {
                self.within = within.to_string();
                (self.file, self.line, self.column) = (note.file, note.line, note.column);
            }
        } else if is_users && note.message.starts_with("to match this ") {
            self.notes.push(note);
        } else if is_users && note.message.starts_with("expanded from macro ") {
            // Nothing at the error's own line says that a name there is a macro's.
            if self.notes.len() < NOTED {
                self.notes.push(note);
            }
        } else if note.message.starts_with("candidate ") {
            if is_users {
                if self.notes.len() < NOTED {
                    self.notes.push(note);
                }
            } else if self.within.is_empty()
                && self.message.starts_with("no viable overloaded")
                && let Some((_, why)) = note.message.split_once("not viable: ")
            {
                self.within = why.to_string();
            }
        }
    }
}

/// So many functions that are not the one that is called are told.
const NOTED: usize = 4;

/// What clang prints of one level.
fn note(line: &str, level: &str) -> Option<Note> {
    let (place, message) = line.split_once(level)?;
    let mut parts = place.rsplitn(3, ':');
    let mut number = || parts.next()?.parse().ok();
    let (column, line) = (number()?, number()?);
    Some(Note {
        file: absolute(Path::new(parts.next()?))
            .to_string_lossy()
            .into_owned(),
        line,
        column,
        message: spelling::in_metal(message),
    })
}

/// What a note says is asked for at its line, if it is such a note: `in instantiation of ... requested here`.
fn asked_for(note: &str) -> Option<&str> {
    let is_step = note.starts_with("in ") || note.starts_with("while ");
    let end = [" requested here", " required here", " needed here"]
        .iter()
        .find_map(|end| note.strip_suffix(end));
    is_step.then(|| end.unwrap_or(note))
}
