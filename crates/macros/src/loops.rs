//! Loops, and the ways out of them.
//!
//! A kernel's loops are left one at a time. So what leaves several loops puts a number into a variable of
//! each loop but the last, `exit`, and leaves that loop; behind it stands a branch for each number.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::visit::{self, Visit};
use syn::{Block, Expr, Lifetime, Pat, Result};

use crate::body::{Body, assign, block_leaves, carried, hidden, hidden_at, name_texts, nest};
use crate::places::table;
use crate::refuse::refuse;
use crate::returns;
use crate::source::{located, place, words};
use crate::variables::inside;

/// A loop around the place of the translation.
pub struct Loop {
    label: Option<String>,
    /// The variables that it changes.
    names: Vec<Ident>,
    /// Where the loops around it are gone on with behind it.
    exits: Vec<Exit>,
    /// What carries the number of one of those, where there can be one.
    exit: Option<Ident>,
    /// What carries the value that a device function gives back.
    result: Option<Ident>,
    /// What carries the value that the loop itself gives.
    value: Option<Ident>,
    /// The one iteration of a device function's body.
    is_function: bool,
    /// How many scopes are around it.
    depth: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Exit {
    /// Which loop, by its place among those around.
    target: usize,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Break,
    Continue,
}

impl Loop {
    /// All that it carries from iteration to iteration.
    fn carried(&self) -> Vec<Ident> {
        let all = self.names.iter().chain(&self.exit).chain(&self.result);
        all.chain(&self.value).cloned().collect()
    }

    /// What is carried, with some of it replaced.
    fn values(&self, replaced: &[(Option<&Ident>, &TokenStream)]) -> TokenStream {
        let all = self.carried();
        all.iter().rev().fold(words!(()), |inner, name| {
            let new = replaced.iter().find(|(of, _)| *of == Some(name));
            let value = new.map_or_else(|| name.to_token_stream(), |(_, new)| (*new).clone());
            carried(&value, &inner)
        })
    }
}

/// What leaves more than its innermost loop.
struct Outward {
    labels: Vec<Lifetime>,
    /// Whether `return` does.
    returns: bool,
    found: bool,
}

impl Visit<'_> for Outward {
    fn visit_label(&mut self, label: &syn::Label) {
        self.labels.push(label.name.clone());
    }

    fn visit_expr_break(&mut self, break_: &syn::ExprBreak) {
        self.jump(break_.label.as_ref());
        visit::visit_expr_break(self, break_);
    }

    fn visit_expr_continue(&mut self, continue_: &syn::ExprContinue) {
        self.jump(continue_.label.as_ref());
    }

    fn visit_expr_return(&mut self, return_: &syn::ExprReturn) {
        self.found |= self.returns;
        visit::visit_expr_return(self, return_);
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        inside(call).iter().for_each(|part| self.visit_expr(part));
    }
}

impl Outward {
    fn jump(&mut self, label: Option<&Lifetime>) {
        if let Some(label) = label {
            self.found |= !self.labels.contains(label);
        }
    }
}

impl Body {
    /// The body of a loop, its variables, and what follows it.
    fn enter(
        &mut self,
        label: Option<&syn::Label>,
        names: &[Ident],
        block: &Block,
        scope: impl FnOnce(&mut Body),
    ) -> Result<Entered> {
        self.enter_for_value(label, names, (block, false), scope)
    }

    /// The same of a loop that may give a value.
    fn enter_for_value(
        &mut self,
        label: Option<&syn::Label>,
        names: &[Ident],
        (block, gives): (&Block, bool),
        scope: impl FnOnce(&mut Body),
    ) -> Result<Entered> {
        let returns = self.loops.iter().any(|l| l.is_function);
        let mut outward = Outward {
            labels: label.iter().map(|l| l.name.clone()).collect(),
            returns,
            found: false,
        };
        outward.visit_block(block);
        self.loops.push(Loop {
            label: label.map(|l| l.name.ident.to_string()),
            names: names.to_vec(),
            exits: Vec::new(),
            // That of a loop inside stands beside it where it is gone on with.
            exit: outward
                .found
                .then(|| hidden(&format!("_exit{}", self.loops.len()))),
            result: (returns && returns::has_return(block)).then(|| hidden("_result")),
            value: gives.then(|| hidden(&format!("_value{}", self.loops.len()))),
            is_function: false,
            depth: self.scopes(),
        });
        let body = self.scoped(|body| {
            scope(body);
            body.block(block)
        });
        let done = self.loops.pop();
        let (body, Some(done)) = (body?, done) else {
            return refuse(block, "a loop ends where it began");
        };
        Ok(Entered { body, done })
    }

    /// Whether the innermost loop around carries a variable of this name.
    pub(crate) fn is_carried(&self, name: &Ident) -> bool {
        self.loops.last().is_some_and(|l| l.names.contains(name))
    }

    /// How many scopes are around the innermost loop.
    pub(crate) fn loop_depth(&self) -> usize {
        self.loops.last().map_or(0, |l| l.depth)
    }

    /// Leaves loops, from where the innermost one is the last of `self.loops`.
    fn jump(
        &mut self,
        place: &TokenStream,
        exit: Exit,
        result: Option<&TokenStream>,
    ) -> TokenStream {
        let here = self.loops.len() - 1;
        let names = self.loops[here].names.clone();
        let kept: Vec<(&Ident, TokenStream)> = names
            .iter()
            .filter_map(|name| Some((name, self.kept(name)?.to_token_stream())))
            .collect();
        let inner = &mut self.loops[here];
        let mut replaced: Vec<(Option<&Ident>, &TokenStream)> = kept
            .iter()
            .map(|(name, value)| (Some(*name), value))
            .collect();
        if exit.target == here {
            replaced.extend(result.map(|result| (inner.result.as_ref(), result)));
            let values = inner.values(&replaced);
            return match exit.way {
                Way::Break => words!(::invar::kernel::expansion::break_(#place, #values)),
                Way::Continue => words!(::invar::kernel::expansion::continue_(#place, #values)),
            };
        }
        let known = inner.exits.iter().position(|e| *e == exit);
        let number = known.unwrap_or_else(|| {
            inner.exits.push(exit);
            inner.exits.len() - 1
        });
        let number = number as u32 + 1;
        let number = words!(::invar::kernel::expansion::lit(#number, #place));
        replaced.push((inner.exit.as_ref(), &number));
        replaced.extend(result.map(|result| (inner.result.as_ref(), result)));
        let values = inner.values(&replaced);
        words!(::invar::kernel::expansion::break_(#place, #values))
    }

    /// What stands around a loop: its variables before, and behind it the ways on.
    fn around(
        &mut self,
        entered: &Entered,
        place: &TokenStream,
        made: &TokenStream,
    ) -> TokenStream {
        let done = &entered.done;
        let after = hidden("after");
        let assign = assign(&done.carried(), &after);
        let (exit, result, value) = (&done.exit, &done.result, &done.value);
        let first = value
            .as_ref()
            .map(|value| words!(let mut #value = ::invar::kernel::expansion::zero();));
        let before = exit
            .as_ref()
            .map(|exit| words!(let mut #exit = ::invar::kernel::expansion::lit(0u32, #place);));
        // A copy of its own: closures of two sides of a branch cannot both change one.
        let copy = result.as_ref().map(|r| words!(let mut #r = #r;));
        let ways: Vec<TokenStream> = done
            .exits
            .iter()
            .zip(1u32..)
            .map(|(way, number)| {
                let value = result.as_ref().map(ToTokens::to_token_stream);
                let jump = self.jump(place, *way, value.as_ref());
                words! {
                    let ((), ()) = ::invar::kernel::expansion::if_(
                        ::invar::kernel::expansion::compare::eq((#exit, ::invar::kernel::expansion::lit(#number, #place))),
                        #place, &[], (), |()| (#jump, ()), |()| ((), ()),
                    );
                }
            })
            .collect();
        words!({
            #before
            #first
            #copy
            let #after = #made;
            #assign
            #(#ways)*
            #value
        })
    }

    fn looped(
        &mut self,
        entered: &Entered,
        place: &TokenStream,
        body: &TokenStream,
    ) -> TokenStream {
        let carried = entered.done.carried();
        let (texts, vars, pattern) = (
            texts(&entered.done),
            nest(&carried, false),
            nest(&carried, true),
        );
        let made = words!(::invar::kernel::expansion::loop_(
            #place, #texts, #vars, |#pattern| { #body #vars },
        ));
        self.around(entered, place, &made)
    }

    pub(crate) fn while_(&mut self, while_: &syn::ExprWhile) -> Result<TokenStream> {
        if let Expr::Let(let_) = &*while_.cond {
            return refuse(
                let_.let_token,
                "a kernel has no `while let`: write a comparison",
            );
        }
        let names = self
            .changed()
            .expr(&while_.cond)
            .block(&while_.body)
            .names();
        let (word, test) = (&while_.while_token, &while_.cond);
        let place = place(quote!(#word #test));
        let condition = self.condition(&while_.cond)?;
        let entered = self.enter(while_.label.as_ref(), &names, &while_.body, |_| {})?;
        let (body, vars) = (&entered.body, nest(&entered.done.carried(), false));
        let body =
            words!(::invar::kernel::expansion::while_(#condition, #place, #vars); { #body };);
        Ok(self.looped(&entered, &place, &body))
    }

    pub(crate) fn loop_(&mut self, loop_: &syn::ExprLoop) -> Result<TokenStream> {
        let names = self.changed().block(&loop_.body).names();
        let body = (&loop_.body, returns::gives_value(loop_));
        let entered = self.enter_for_value(loop_.label.as_ref(), &names, body, |_| {})?;
        let body = &entered.body;
        let body = words!({ #body };);
        Ok(self.looped(&entered, &place(loop_.loop_token), &body))
    }

    pub(crate) fn for_(&mut self, for_: &syn::ExprForLoop) -> Result<TokenStream> {
        const FORM: &str = "`for` counts in a kernel: `for i in 0..n`, `0..=n`, `(0..n).step_by(2)`, \
                            `(0..n).rev()`; or takes values, `for x in [a, b, c]` or `for x in TABLE`";
        let mut counted = &*for_.expr;
        let (mut step, mut is_reversed) = (None, false);
        loop {
            counted = match counted {
                Expr::Paren(inner) => &inner.expr,
                Expr::MethodCall(call) => {
                    match (call.method.to_string().as_str(), call.args.first()) {
                        // From behind, `step_by` begins elsewhere.
                        ("step_by", Some(by)) if step.is_none() && !is_reversed => step = Some(by),
                        ("rev", None) if !is_reversed => is_reversed = true,
                        _ => return refuse(&call.method, FORM),
                    }
                    &call.receiver
                }
                _ => break,
            }
        }
        if std::ptr::eq(counted, &raw const *for_.expr)
            && let Some(values) = self.listed(counted)?
        {
            return self.for_each(for_, &values);
        }
        let Expr::Range(range) = counted else {
            return refuse(counted, FORM);
        };
        let (Some(start), Some(end)) = (&range.start, &range.end) else {
            return refuse(range, FORM);
        };
        let (text, index) = match &*for_.pat {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
                (name.ident.to_string(), Some(&name.ident))
            }
            Pat::Wild(_) => (String::new(), None),
            other => return refuse(other, "what `for` counts is a name"),
        };
        let names = self.changed().expr(&Expr::ForLoop(for_.clone())).names();
        let (lower, upper) = (self.expr(start)?, self.expr(end)?);
        let mut over = words!(::invar::kernel::expansion::range(#lower, #upper, || 1));
        if let syn::RangeLimits::Closed(_) = &range.limits {
            over.extend(words!(.closed()));
        }
        if is_reversed {
            over.extend(words!(.reversed()));
        }
        if let Some(step) = step {
            let step = self.expr(step)?;
            over.extend(words!(.step_by(#step)));
        }
        let entered = self.enter(for_.label.as_ref(), &names, &for_.body, |body| {
            if let Some(index) = index {
                body.declare(index);
            }
        })?;
        let (word, pat, expr) = (&for_.for_token, &for_.pat, &for_.expr);
        let place = place(quote!(#word #expr));
        let carried = entered.done.carried();
        let (texts, vars, pattern) = (
            texts(&entered.done),
            nest(&carried, false),
            nest(&carried, true),
        );
        let body = &entered.body;
        let made = words!(::invar::kernel::expansion::for_(
            #over, #place, #text, #texts, #vars,
            |#pat, #pattern| { { #body }; #vars },
        ));
        Ok(self.around(&entered, &place, &made))
    }

    /// What `for` takes one after the other, if it is an array that is written out or a Rust constant.
    fn listed(&mut self, expr: &Expr) -> Result<Option<Listed>> {
        match expr {
            Expr::Array(array) if !array.elems.is_empty() => {
                let parts: Vec<TokenStream> = array
                    .elems
                    .iter()
                    .map(|part| self.expr(part))
                    .collect::<Result<_>>()?;
                Ok(Some(Listed {
                    count: parts.len().to_token_stream(),
                    all: words!([#(#parts),*]),
                    take: words!(nth),
                }))
            }
            Expr::Path(path) if !self.is_own(&path.path) => Ok(Some(Listed {
                count: words!(#path.len()),
                all: table(path),
                take: words!(entry),
            })),
            _ => Ok(None),
        }
    }

    /// `for x in [a, b, c]`: a loop that counts, with the value of each iteration.
    fn for_each(&mut self, for_: &syn::ExprForLoop, values: &Listed) -> Result<TokenStream> {
        let names = self.changed().expr(&Expr::ForLoop(for_.clone())).names();
        let (all, iteration) = (hidden("all"), hidden("iteration"));
        let take = &values.take;
        let value = words!(::invar::kernel::expansion::#take(#all, #iteration));
        let here = located(&for_.expr);
        let mut bind = Ok(TokenStream::new());
        let entered = self.enter(for_.label.as_ref(), &names, &for_.body, |body| {
            bind = body.bound_to(&for_.pat, &TokenStream::new(), &value, here);
        })?;
        let (bind, word, expr) = (bind?, &for_.for_token, &for_.expr);
        let place = place(quote!(#word #expr));
        let carried = entered.done.carried();
        let (texts, vars, pattern) = (
            texts(&entered.done),
            nest(&carried, false),
            nest(&carried, true),
        );
        let (body, values, count) = (&entered.body, &values.all, &values.count);
        let made = words!({
            let #all = #values;
            ::invar::kernel::expansion::for_(
                ::invar::kernel::expansion::iterations(#count, #place), #place, "", #texts, #vars,
                |#iteration, #pattern| { #bind { #body }; #vars },
            )
        });
        Ok(self.around(&entered, &place, &made))
    }

    /// The loop of a label, or the innermost one.
    fn target(&self, label: Option<&Lifetime>) -> Option<usize> {
        match label {
            Some(label) => self
                .loops
                .iter()
                .rposition(|l| l.label.as_ref().is_some_and(|name| label.ident == name)),
            None => self.loops.iter().rposition(|l| !l.is_function),
        }
    }

    pub(crate) fn break_(&mut self, break_: &syn::ExprBreak) -> Result<TokenStream> {
        let Some(target) = self.target(break_.label.as_ref()) else {
            return refuse(break_, "there is no loop to leave");
        };
        let way = Way::Break;
        let place = place(break_);
        let Some(given) = &break_.expr else {
            return Ok(self.jump(&place, Exit { target, way }, None));
        };
        let Some(carrier) = self.loops[target].value.clone() else {
            return refuse(
                given,
                "`while` and `for` give nothing: `loop` gives a value",
            );
        };
        if target + 1 != self.loops.len() {
            return refuse(
                given,
                "a value leaves the innermost loop only: put it into a variable",
            );
        }
        let (value, new) = (self.expr(given)?, hidden_at("given", given));
        let values = self.loops[target].values(&[(Some(&carrier), &new.to_token_stream())]);
        Ok(words!({
            let #new = ::invar::kernel::expansion::alike(#carrier, #value);
            ::invar::kernel::expansion::break_(#place, #values)
        }))
    }

    pub(crate) fn continue_(&mut self, continue_: &syn::ExprContinue) -> Result<TokenStream> {
        let Some(target) = self.target(continue_.label.as_ref()) else {
            return refuse(continue_, "there is no loop to go on with");
        };
        let way = Way::Continue;
        Ok(self.jump(&place(continue_), Exit { target, way }, None))
    }

    // ---- device functions ----

    /// The body of a device function that is left in its midst: a loop of one iteration.
    pub(crate) fn run_once(&mut self, block: &Block) -> Result<TokenStream> {
        let (result, value) = (hidden("_result"), hidden("value"));
        self.loops.push(Loop {
            label: None,
            names: Vec::new(),
            exits: Vec::new(),
            exit: None,
            result: Some(result.clone()),
            value: None,
            is_function: true,
            depth: self.scopes(),
        });
        let body = self.block(block);
        self.loops.pop();
        let (mut body, place) = (body?, place(block));
        if block_leaves(block) {
            body.extend(words!(; ::invar::kernel::expansion::never()));
        }
        let ty = self.output.as_ref().map(|ty| words!(: #ty));
        let vars = nest(std::slice::from_ref(&result), false);
        let given = nest(std::slice::from_ref(&value), false);
        Ok(words! {
            let #result #ty = ::invar::kernel::expansion::zero();
            let #vars = ::invar::kernel::expansion::loop_(
                #place, &[""], #vars, |#vars| {
                    let #value = ::invar::kernel::expansion::alike(#result, { #body });
                    ::invar::kernel::expansion::break_(#place, #given);
                    #vars
                },
            );
            #result
        })
    }

    /// `return` in a device function.
    pub(crate) fn give_back(&mut self, return_: &syn::ExprReturn) -> Result<TokenStream> {
        let value = match &return_.expr {
            Some(value) => self.expr(value)?,
            None => words!(()),
        };
        let (given, place) = (hidden("returned"), place(return_));
        let exit = Exit {
            target: 0,
            way: Way::Break,
        };
        let jump = self.jump(&place, exit, Some(&given.to_token_stream()));
        let result = hidden("_result");
        Ok(words!({
            let #given = ::invar::kernel::expansion::alike(#result, #value);
            #jump
        }))
    }
}

/// What a `for` takes one after the other.
struct Listed {
    /// How many there are, what they are, and what gives that of an iteration.
    count: TokenStream,
    all: TokenStream,
    take: TokenStream,
}

/// A loop's body, and what is known of it behind it.
struct Entered {
    body: TokenStream,
    done: Loop,
}

/// The names of what a loop carries, for reports: those that are not the author's have none.
fn texts(done: &Loop) -> TokenStream {
    name_texts(&done.names)
}
