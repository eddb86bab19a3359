//! From LLVM IR to the functions of kernels, by several threads: LLVM's values are one thread's own, so each reads the
//! IR once and makes its share of the kernels, while what is made is translated in the order of the source.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use invar_ir::room::{COMPILER_BYTES, with_room};
use invar_llvm::foreign::{Function, Module, Unread, function_name};

use crate::needed::needs_unknown;

/// For one thread more there is at least so much IR, since each reads all of it. That of a kernel with the headers is
/// a few hundred kilobytes.
const BYTES_PER_THREAD: usize = 2 << 20;

/// So many functions are made by a thread before they are asked for: large ones are some megabytes.
const AHEAD: usize = 16;

enum Message {
    Names(Vec<Named>),
    /// A kernel, or how many loops it has, which are too many.
    Kernel(Box<Result<Function, usize>>),
    Failed(String),
}

/// A kernel of the source.
#[derive(Clone)]
pub(crate) struct Named {
    /// By which hosts know it.
    pub name: String,
    /// By which LLVM does.
    symbol: String,
    /// The most threads that a threadgroup of it may have, if it says so.
    pub most_threads: Option<i64>,
}

/// One thread of so many.
#[derive(Clone, Copy)]
struct Share {
    number: usize,
    of: usize,
}

impl Share {
    /// The kernels that are asked for, of those this thread makes every so many.
    fn own<'n>(self, names: &'n [Named], asked: Option<&str>) -> Vec<&'n str> {
        let symbols = wanted(names, asked).map(|named| &*named.symbol);
        symbols.skip(self.number).step_by(self.of).collect()
    }
}

fn wanted<'n>(names: &'n [Named], asked: Option<&str>) -> impl Iterator<Item = &'n Named> {
    let is_asked = move |name: &str| asked.is_none_or(|asked| asked == name);
    names.iter().filter(move |named| is_asked(&named.name))
}

/// Gives the kernel of a name, or all, in the order of the source, and then the names of all; instead of one with too
/// many loops, how many it has.
///
/// # Errors
/// What LLVM cannot read.
pub(crate) fn kernels(
    ir: &[u8],
    asked: Option<&str>,
    take: &mut dyn FnMut(&Named, Result<Function, usize>),
) -> Result<Vec<String>, String> {
    let most = thread::available_parallelism().map_or(1, usize::from);
    let threads = (ir.len() / BYTES_PER_THREAD).clamp(1, most);
    kernels_by(threads, ir, asked, take)
}

fn kernels_by(
    of: usize,
    ir: &[u8],
    asked: Option<&str>,
    take: &mut dyn FnMut(&Named, Result<Function, usize>),
) -> Result<Vec<String>, String> {
    thread::scope(|scope| {
        let shares = (0..of).map(|number| {
            let (sender, receiver) = sync_channel(AHEAD);
            let share = Share { number, of };
            scope.spawn(move || with_room(COMPILER_BYTES, || make(ir, asked, share, &sender)));
            receiver
        });
        let shares: Vec<Receiver<Message>> = shares.collect();
        let names = match next(&shares[0])? {
            Message::Names(names) => names,
            _other => return Err(ENDED.to_string()),
        };
        for (number, named) in wanted(&names, asked).enumerate() {
            match next(&shares[number % of])? {
                Message::Kernel(function) => take(named, *function),
                _other => return Err(ENDED.to_string()),
            }
        }
        Ok(names.into_iter().map(|named| named.name).collect())
    })
}

/// The next of a thread, which sends what is to come in the order in which it is asked for.
fn next(from: &Receiver<Message>) -> Result<Message, String> {
    match from.recv() {
        Ok(Message::Failed(why)) => Err(why),
        Ok(message) => Ok(message),
        Err(_ended) => Err(ENDED.to_string()),
    }
}

const ENDED: &str = "a thread that reads LLVM IR ended early";

/// Makes a share; where nobody takes what is made, no more is.
fn make(ir: &[u8], asked: Option<&str>, share: Share, to: &SyncSender<Message>) {
    let made = Module::read(ir).and_then(|module| {
        let names = kernel_names(&module);
        let own = share.own(&names, asked);
        if share.number == 0 && to.send(Message::Names(names.clone())).is_err() || own.is_empty() {
            return Ok(());
        }
        let mut symbols = own.iter();
        module.functions(&own, &mut |mut function| {
            let symbol = symbols.next();
            // Passes go on where nothing comes of what has no value.
            if let (Ok(read), Some(symbol)) = (&function, symbol)
                && read.reads_unknown
                && !needs_unknown(read)
            {
                function = match Module::read(ir).map(|module| module.function(symbol)) {
                    Ok(Ok(whole)) => Ok(whole),
                    Ok(Err(Unread::Loops(loops))) => Err(loops),
                    Ok(Err(Unread::Failed(_))) | Err(_) => function,
                };
            }
            to.send(Message::Kernel(Box::new(function))).is_ok()
        })
    });
    if let Err(why) = made {
        // If nobody listens, nobody wants to know.
        drop(to.send(Message::Failed(why)));
    }
}

/// The kernels of a module.
fn kernel_names(module: &Module) -> Vec<Named> {
    let annotations = module.annotations();
    let kernels = annotations
        .iter()
        .filter(|(_, what, _)| what == "msl.kernel");
    let mut all: Vec<Named> = Vec::new();
    for (symbol, ..) in kernels {
        let said = annotations
            .iter()
            .filter(|(s, what, _)| s == symbol && what == "msl.most_threads");
        let most_threads = said.filter_map(|(_, _, most)| most.as_ref()?.parse().ok());
        let most_threads = most_threads.min();
        let hosts = annotations
            .iter()
            .filter(|(s, what, _)| s == symbol && what == "msl.host_name");
        let mut names: Vec<String> = hosts.filter_map(|(_, _, text)| text.clone()).collect();
        if names.is_empty() {
            names.push(function_name(symbol));
        }
        for name in names {
            if !all.iter().any(|known| known.name == name) {
                all.push(Named {
                    name,
                    symbol: symbol.clone(),
                    most_threads,
                });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::kernels_by;

    /// Kernels that store their numbers.
    fn ir(count: u32) -> String {
        let mut all = String::from("@what = private constant [11 x i8] c\"msl.kernel\\00\"\n");
        for k in 0..count {
            all += &format!("define void @k{k}(ptr %x) {{ store i32 {k}, ptr %x ret void }}\n");
        }
        let notes = (0..count)
            .map(|k| format!("{{ ptr, ptr, ptr, i32, ptr }} {{ ptr @k{k}, ptr @what, ptr @what, i32 0, ptr null }}"));
        let notes: Vec<String> = notes.collect();
        all + &format!(
            "@llvm.global.annotations = appending global [{count} x {{ ptr, ptr, ptr, i32, ptr }}] [{}]",
            notes.join(", ")
        )
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "a skipped test says so")]
    fn threads_give_the_kernels_in_the_order_of_the_source() {
        if let Err(why) = invar_llvm::identity() {
            println!("skipped: {why}");
            return;
        }
        let ir = ir(40);
        let by = |threads: usize, asked: Option<&str>| {
            let mut all = Vec::new();
            let names = kernels_by(threads, ir.as_bytes(), asked, &mut |named, function| {
                all.push((
                    named.name.clone(),
                    format!("{:?}", function.map(|f| f.insts)),
                ));
            });
            (names, all)
        };
        let (names, alone) = by(1, None);
        let expected: Vec<String> = (0..40).map(|k| format!("k{k}")).collect();
        assert_eq!(names, Ok(expected.clone()));
        let order: Vec<String> = alone.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(order, expected);
        for threads in [2, 3, 64] {
            assert_eq!(by(threads, None), (Ok(expected.clone()), alone.clone()));
        }
        let (names, one) = by(2, Some("k7"));
        assert_eq!((names, &one[..]), (Ok(expected), &alone[7..8]));
        assert!(kernels_by(2, b"no IR", None, &mut |_, _| ()).is_err());
    }
}
