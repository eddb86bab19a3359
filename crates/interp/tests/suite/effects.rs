//! What `ir` states of instructions, against what the reference machine does: its observers see every
//! access and barrier, and a copy of what is said to have no effect must change nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use invar_interp::case::{bind, mismatches};
use invar_interp::observe::{
    Access, AsyncCopy, Kind, Launch, ObjectInfo, Observer, SiteKind, Touched, Who,
};
use invar_interp::{Options, run};
use invar_ir::rewrite::rewrite;
use invar_ir::text::case::{RunCase, cases};
use invar_ir::text::parse;
use invar_ir::{
    AccessMode, Diagnostic, Diagnostics, Elements, Inst, InstKind, Kernel, KernelBuilder, Module,
    Scope, Spaces, Span, Type, Verified, verify,
};

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir/run");
    invar_ir::text::case::files(&folder).expect("the folder of file tests")
}

/// How an access was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Place,
    Run,
    Shared,
    Texels,
}

/// What an instruction was seen to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    Read(Way),
    Write(Way),
    /// With its name and order.
    Atomic(&'static str, &'static str),
}

fn stated(mode: AccessMode, elements: Elements<'_>) -> Done {
    let way = match elements {
        Elements::Place(_) => Way::Place,
        Elements::Run(_) => Way::Run,
        Elements::Shared(_) => Way::Shared,
        Elements::Texels(_) => Way::Texels,
    };
    match mode {
        AccessMode::Read => Done::Read(way),
        AccessMode::Write => Done::Write(way),
        AccessMode::Atomic { op, order, .. } => Done::Atomic(op.name(), order.name()),
    }
}

/// Holds what it sees against what the instructions of the kernel state.
#[derive(Default)]
struct Watch {
    /// Instructions of the kernel as it runs, by where they were written.
    insts: HashMap<Span, Vec<Inst>>,
    /// Of each object, the memory that its instructions name.
    objects: Vec<(String, invar_ir::AddressSpace)>,
    /// For each instruction and each memory that it names, that memory's name and space.
    names: HashMap<invar_ir::Memory, (String, invar_ir::AddressSpace)>,
    sites: Vec<(Span, SiteKind)>,
    /// By instruction's word, what was seen.
    seen: BTreeSet<(&'static str, Done)>,
    met: BTreeSet<&'static str>,
    wrong: Vec<String>,
}

impl Watch {
    fn did(&mut self, site: u32, object: u32, done: Done) {
        let (span, _) = self.sites[site as usize];
        let object = &self.objects[object as usize];
        let here = self.insts.get(&span).map_or(&[][..], Vec::as_slice);
        let found = here.iter().find(|inst| {
            inst.kind.accesses().iter().any(|access| {
                stated(access.mode, access.elements) == done
                    && self.names[&access.memory] == *object
            })
        });
        match found {
            Some(inst) => {
                self.seen.insert((inst.kind.name(), done));
                let plain_read = matches!(done, Done::Read(_));
                if !plain_read && (inst.kind.is_removable() || !inst.kind.may_change_memory()) {
                    self.wrong
                        .push(format!("`{}` did {done:?}", inst.kind.name()));
                }
                if inst.kind.is_speculatable() {
                    self.wrong
                        .push(format!("`{}` touches memory", inst.kind.name()));
                }
            }
            None => {
                let names: Vec<&str> = here.iter().map(|inst| inst.kind.name()).collect();
                self.wrong.push(format!(
                    "nothing of {names:?} states {done:?} of {object:?}"
                ));
            }
        }
    }

    /// The instruction at a site that makes threads of a scope meet.
    fn meeting(&mut self, site: u32, scope: Scope) {
        let (span, _) = self.sites[site as usize];
        let here = self.insts.get(&span).map_or(&[][..], Vec::as_slice);
        match here.iter().find(|inst| inst.kind.meets() == Some(scope)) {
            Some(inst) => {
                self.met.insert(inst.kind.name());
                if !inst.kind.orders_memory() || inst.kind.is_removable() {
                    self.wrong
                        .push(format!("`{}` is a barrier", inst.kind.name()));
                }
            }
            None => self
                .wrong
                .push(format!("threads of a {} meet in {here:?}", scope.name())),
        }
    }
}

impl Observer for Watch {
    fn wants(&self, _: &ObjectInfo) -> bool {
        true
    }

    fn begin(&mut self, launch: &Launch) -> Result<(), Diagnostic> {
        self.insts.clear();
        self.names.clear();
        launch.kernel.for_each_inst(&mut |inst| {
            self.insts.entry(inst.span).or_default().push(inst.clone());
            inst.kind.for_each_memory(|memory| {
                let info = launch.module.memory(launch.kernel, memory);
                let info = info.expect("a verified kernel names what is there");
                self.names
                    .insert(memory, (info.name.to_string(), info.space));
            });
        });
        let objects = launch.objects.iter();
        self.objects = objects.map(|o| (o.name.clone(), o.space)).collect();
        self.sites = launch.sites.iter().map(|s| (s.span, s.kind)).collect();
        Ok(())
    }

    fn access(&mut self, access: &Access) {
        let copies = self.sites[access.site as usize].1 == SiteKind::Copy;
        let way = if copies { Way::Run } else { Way::Place };
        let done = match access.kind {
            Kind::Read => Done::Read(way),
            Kind::Write => Done::Write(way),
            Kind::Atomic { op, order, .. } => Done::Atomic(op.name(), order.name()),
        };
        self.did(access.site, access.object, done);
    }

    fn collective(&mut self, _: Who, site: u32, kind: Kind, region: Touched, _: &[bool]) {
        let done = match kind {
            Kind::Read => Done::Read(Way::Shared),
            Kind::Write => Done::Write(Way::Shared),
            Kind::Atomic { op, order, .. } => Done::Atomic(op.name(), order.name()),
        };
        self.did(site, region.object, done);
    }

    fn issue(&mut self, copy: &AsyncCopy) {
        self.did(copy.site, copy.source.object, Done::Read(Way::Shared));
        self.did(copy.site, copy.destination.object, Done::Write(Way::Shared));
    }

    fn barrier(&mut self, _: Who, site: u32, scope: Scope, _: Spaces) {
        self.meeting(site, scope);
    }
}

/// Runs a case once; gives what it expects and does not get.
fn outcome(
    module: &Verified,
    case: &RunCase,
    observers: &mut [&mut dyn Observer],
) -> Result<Vec<String>, Diagnostics> {
    let kernel = module.kernel(&case.kernel.name);
    let required = case.simdgroup.or(kernel.and_then(|k| k.simdgroup_size));
    let options = Options {
        seed: 1,
        simdgroup_size: Some(required.unwrap_or(32)),
        step_limit: 1_000_000_000,
        ..Options::default()
    };
    let mut no_files = |name: &str, _: &_| Err(format!("no file `{name}`"));
    let mut natural = bind(module, case, &options, &mut no_files)?;
    let mut now = bind(module, case, &options, &mut no_files)?;
    natural.options.seed = 0;
    run(
        module,
        &natural.kernel,
        &natural.dispatch,
        &mut natural.args,
        &natural.options,
        &mut [],
    )?;
    run(
        module,
        &now.kernel,
        &now.dispatch,
        &mut now.args,
        &now.options,
        observers,
    )?;
    let wrong = mismatches(module, case, &now.args, &natural.args, &mut no_files);
    Ok(wrong.iter().map(ToString::to_string).collect())
}

fn read(path: &Path) -> (String, String) {
    let source = std::fs::read_to_string(path).expect("the corpus can be read");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (name.into_owned(), source)
}

#[test]
fn the_machine_does_what_instructions_state_and_nothing_else() {
    let mut watch = Watch::default();
    let mut wanted: BTreeMap<(&str, Done), u32> = BTreeMap::new();
    let mut barriers: BTreeSet<&str> = BTreeSet::new();
    let mut words: BTreeSet<&str> = BTreeSet::new();
    for path in corpus() {
        let (name, source) = read(&path);
        let module = parse(&name, &source)
            .and_then(verify)
            .expect("the corpus is valid");
        for kernel in &module.kernels {
            kernel.for_each_inst(&mut |inst| {
                words.insert(inst.kind.name());
                for access in inst.kind.accesses() {
                    let done = stated(access.mode, access.elements);
                    *wanted.entry((inst.kind.name(), done)).or_default() += 1;
                }
                if let InstKind::Barrier { .. } = inst.kind {
                    barriers.insert(inst.kind.name());
                }
            });
        }
        for case in cases(&source).expect("its cases can be read") {
            let wrong = outcome(&module, &case, &mut [&mut watch]).expect("it runs");
            assert!(wrong.is_empty(), "{name}: {}", wrong.join("\n"));
        }
        assert!(watch.wrong.is_empty(), "{name}: {}", watch.wrong.join("\n"));
    }
    for (what, count) in &wanted {
        assert!(
            watch.seen.contains(what),
            "{what:?}, stated {count} times, was never seen"
        );
    }
    assert_eq!(watch.met, barriers);
    for word in InstKind::STRUCTURAL {
        assert!(words.contains(word), "no file of the corpus has `{word}`");
    }
}

/// What to do with each instruction before it is made.
type Before = fn(&mut KernelBuilder, &Inst, &[Type]);

/// A module with something in front of each instruction, and in front of how many.
fn with(module: Module, before: Before, which: fn(&InstKind) -> bool) -> (Verified, usize) {
    let mut module = module;
    let mut count = 0;
    for index in 0..module.kernels.len() {
        let old: Kernel = module.kernels[index].clone();
        let changed = rewrite(module, index, &mut |builder, inst| {
            if which(&inst.kind) {
                let types: Vec<Type> = inst.results.iter().map(|v| old.ty(*v)).collect();
                before(builder, inst, &types);
                count += 1;
            }
            None
        });
        module = changed.expect("what was added is well formed");
    }
    (
        verify(module).expect("what was added breaks no rule"),
        count,
    )
}

/// Runs the corpus with something in front of each instruction of a kind; gives how many instructions
/// of each word that were.
fn nothing_changes(before: Before, which: fn(&InstKind) -> bool) -> BTreeSet<&'static str> {
    let mut words: BTreeSet<&str> = BTreeSet::new();
    for path in corpus() {
        let (name, source) = read(&path);
        let module = parse(&name, &source).expect("the corpus is valid");
        for kernel in &module.kernels {
            kernel.for_each_inst(&mut |inst| {
                if which(&inst.kind) {
                    words.insert(inst.kind.name());
                }
            });
        }
        let (changed, count) = with(module, before, which);
        assert!(count > 0, "{name} has no such instruction");
        for case in cases(&source).expect("its cases can be read") {
            let wrong = outcome(&changed, &case, &mut []).expect("it runs");
            assert!(wrong.is_empty(), "{name}: {}", wrong.join("\n"));
        }
    }
    words
}

#[test]
fn what_is_removable_can_be_made_once_more_for_nothing() {
    let words = nothing_changes(
        |builder, inst, types| {
            builder.push(inst.kind.clone(), types);
        },
        InstKind::is_removable,
    );
    for word in [
        "load",
        "matrix_load",
        "assert_uniform",
        "simd_sum",
        "buffer_length",
    ] {
        assert!(words.contains(word), "no file of the corpus has `{word}`");
    }
}

#[test]
fn what_is_speculatable_can_be_made_by_some_threads_for_nothing() {
    let words = nothing_changes(
        |builder, inst, types| {
            let number = builder.thread_index_in_threadgroup();
            let one = builder.const_u32(1);
            let bit = builder.and(number, one);
            let odd = builder.eq(bit, one);
            builder.open_region(&[]);
            builder.push(inst.kind.clone(), types);
            let then = builder.close_region();
            builder.open_region(&[]);
            let otherwise = builder.close_region();
            builder.if_regions(odd, then, otherwise);
        },
        InstKind::is_speculatable,
    );
    for word in [
        "const",
        "add",
        "div",
        "thread_position_in_grid",
        "buffer_length",
    ] {
        assert!(words.contains(word), "no file of the corpus has `{word}`");
    }
}
