//! `return` in device functions, whose bodies stand in those of kernels: as far as possible it becomes the
//! value at the end of a branch.

use syn::visit::Visit;
use syn::{Block, Expr, Stmt, Token};

use crate::attributes;
use crate::source::located;
use crate::variables::inside;

/// Whether there is a `return` in a block.
pub fn has_return(block: &Block) -> bool {
    struct Finder(bool);
    impl Visit<'_> for Finder {
        fn visit_expr_return(&mut self, _return: &syn::ExprReturn) {
            self.0 = true;
        }

        fn visit_macro(&mut self, call: &syn::Macro) {
            inside(call).iter().for_each(|part| self.visit_expr(part));
        }
    }
    let mut finder = Finder(false);
    finder.visit_block(block);
    finder.0
}

/// What leaves a loop.
struct Breaks<'a> {
    label: Option<&'a syn::Lifetime>,
    /// Loops around the place inside the loop.
    depth: u32,
    found: bool,
    with_value: bool,
}

impl<'a> Breaks<'a> {
    fn of(loop_: &'a syn::ExprLoop) -> Breaks<'a> {
        let mut breaks = Breaks {
            label: loop_.label.as_ref().map(|l| &l.name),
            depth: 0,
            found: false,
            with_value: false,
        };
        breaks.visit_block(&loop_.body);
        breaks
    }

    fn inside(&mut self, block: &Block) {
        self.depth += 1;
        self.visit_block(block);
        self.depth -= 1;
    }
}

impl Visit<'_> for Breaks<'_> {
    fn visit_expr_break(&mut self, break_: &syn::ExprBreak) {
        let leaves = match &break_.label {
            Some(label) => Some(label) == self.label,
            None => self.depth == 0,
        };
        self.found |= leaves;
        self.with_value |= leaves && break_.expr.is_some();
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        inside(call).iter().for_each(|part| self.visit_expr(part));
    }

    fn visit_expr_loop(&mut self, inner: &syn::ExprLoop) {
        self.inside(&inner.body);
    }

    fn visit_expr_while(&mut self, inner: &syn::ExprWhile) {
        self.inside(&inner.body);
    }

    fn visit_expr_for_loop(&mut self, inner: &syn::ExprForLoop) {
        self.inside(&inner.body);
    }
}

/// Whether a loop is left by nothing but `return` or a loop around it.
pub fn is_endless(loop_: &syn::ExprLoop) -> bool {
    !Breaks::of(loop_).found
}

/// Whether a `break` of a loop has a value.
pub fn gives_value(loop_: &syn::ExprLoop) -> bool {
    Breaks::of(loop_).with_value
}

/// The same block, where `return` at an end is the value there, and what follows `if c { return a; }` is
/// its other side.
pub fn at_the_end(block: &Block) -> Block {
    let mut out = block.clone();
    for (i, statement) in block.stmts.iter().enumerate() {
        let is_last = i + 1 == block.stmts.len();
        let Stmt::Expr(expr, semicolon) = statement else {
            continue;
        };
        if !attributes::of_statement(expr).is_empty() {
            continue;
        }
        match expr {
            Expr::Return(return_) if is_last => {
                out.stmts.truncate(i);
                if let Some(value) = &return_.expr {
                    out.stmts.push(Stmt::Expr(result(value), None));
                }
            }
            Expr::If(if_)
                if is_last
                    && if_.else_branch.is_some()
                    && (semicolon.is_none() || has_return(block)) =>
            {
                out.stmts[i] = Stmt::Expr(Expr::If(both_sides(if_)), None);
            }
            other if is_last && semicolon.is_none() => {
                out.stmts[i] = Stmt::Expr(result(other), None);
            }
            Expr::If(if_) if !is_last && if_.else_branch.is_none() && ends(&if_.then_branch) => {
                let rest = Block {
                    brace_token: block.brace_token,
                    stmts: block.stmts[i + 1..].to_vec(),
                };
                let mut whole = if_.clone();
                let rest = Expr::Block(syn::ExprBlock {
                    attrs: Vec::new(),
                    label: None,
                    block: rest,
                });
                whole.else_branch = Some((<Token![else]>::default(), Box::new(rest)));
                out.stmts.truncate(i);
                out.stmts
                    .push(Stmt::Expr(Expr::If(both_sides(&whole)), None));
                return out;
            }
            _ => {}
        }
    }
    out
}

/// A value that the function gives back, marked as such by a group without marks, of which there are no others: it
/// has the function's type.
fn result(value: &Expr) -> Expr {
    match value {
        Expr::Array(_)
        | Expr::Binary(_)
        | Expr::Call(_)
        | Expr::Cast(_)
        | Expr::Field(_)
        | Expr::Index(_)
        | Expr::Lit(_)
        | Expr::MethodCall(_)
        | Expr::Paren(_)
        | Expr::Path(_)
        | Expr::Repeat(_)
        | Expr::Struct(_)
        | Expr::Tuple(_)
        | Expr::Unary(_) => Expr::Group(syn::ExprGroup {
            attrs: Vec::new(),
            group_token: syn::token::Group {
                span: located(value),
            },
            expr: Box::new(value.clone()),
        }),
        other => other.clone(),
    }
}

/// Whether a block ends with `return`.
fn ends(block: &Block) -> bool {
    matches!(block.stmts.last(), Some(Stmt::Expr(Expr::Return(r), _)) if r.attrs.is_empty())
}

/// A branch whose sides end the function.
fn both_sides(if_: &syn::ExprIf) -> syn::ExprIf {
    let mut out = if_.clone();
    out.then_branch = at_the_end(&if_.then_branch);
    if let Some((_, otherwise)) = &mut out.else_branch {
        match &mut **otherwise {
            Expr::Block(block) => block.block = at_the_end(&block.block),
            Expr::If(inner) => *inner = both_sides(inner),
            _ => {}
        }
    }
    out
}
