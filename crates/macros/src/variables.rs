//! Which variables a block changes that are declared outside of it: those that control flow carries.

use std::collections::HashSet;

use syn::parse::ParseStream;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Ident, Pat, Token};

use crate::attributes;
use crate::print::Line;

/// The variables that some expressions and blocks change, in the order in which they are first changed.
#[derive(Default)]
pub struct Changed {
    /// Variables around that are values: what changes an element of those changes the variable, and what
    /// changes one of an array does not.
    values: HashSet<String>,
    names: Vec<Ident>,
    scopes: Vec<HashSet<String>>,
}

impl Changed {
    /// Of those that are declared around, these are values.
    pub fn among(values: HashSet<String>) -> Changed {
        Changed {
            values,
            ..Changed::default()
        }
    }

    /// Takes an expression in.
    pub fn expr(mut self, expr: &Expr) -> Changed {
        self.visit_expr(expr);
        self
    }

    /// Takes an arm of a `match` in.
    pub fn arm(mut self, arm: &syn::Arm) -> Changed {
        self.visit_arm(arm);
        self
    }

    /// Takes a block in.
    pub fn block(mut self, block: &Block) -> Changed {
        self.visit_block(block);
        self
    }

    /// The variables.
    pub fn names(self) -> Vec<Ident> {
        self.names
    }

    fn change(&mut self, target: &Expr) {
        if let Expr::Tuple(targets) = target {
            targets.elems.iter().for_each(|one| self.change(one));
        }
        let Some((name, is_indexed)) = root(target) else {
            return;
        };
        if is_indexed && !self.values.contains(&name.to_string()) {
            return;
        }
        let inside = self.scopes.iter().any(|s| s.contains(&name.to_string()));
        if !inside && !self.names.contains(name) {
            // Its first place would be shown where it is declared.
            self.names.push(name.clone());
        }
    }
}

/// The variable that a chain of fields and indices begins with, and whether there is an index.
pub fn root(target: &Expr) -> Option<(&Ident, bool)> {
    let (mut whole, mut is_indexed) = (target, false);
    loop {
        whole = match whole {
            Expr::Field(field) => &field.base,
            Expr::Paren(inner) => &inner.expr,
            Expr::Index(index) => {
                is_indexed = true;
                &index.expr
            }
            other => return variable(other).map(|name| (name, is_indexed)),
        };
    }
}

/// The name of an expression that is one.
pub fn variable(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Paren(inner) => variable(&inner.expr),
        _ => None,
    }
}

/// Whether a call is of `println`, or of `std::println`.
pub fn is_println(call: &syn::Macro) -> bool {
    let names: Vec<_> = call.path.segments.iter().map(|s| &s.ident).collect();
    match names[..] {
        [name] => name == "println",
        [library, name] => library == "std" && name == "println",
        _ => false,
    }
}

/// The expressions in a call of a macro that kernels have, in the order of their evaluation.
pub fn inside(call: &syn::Macro) -> Vec<Expr> {
    if is_println(call) {
        return Line::of(call).map_or_else(|_| Vec::new(), |line| line.arguments);
    }
    if call.path.is_ident("matches") {
        let parts = Matches::of(call);
        return parts.map_or_else(
            |_| Vec::new(),
            |parts| {
                let guard = parts.guard.map(|(_, guard)| guard);
                std::iter::once(parts.subject).chain(guard).collect()
            },
        );
    }
    Vec::new()
}

/// `matches!(subject, pattern if guard)`.
pub struct Matches {
    pub subject: Expr,
    pub pattern: Pat,
    pub guard: Option<(Token![if], Expr)>,
}

impl Matches {
    pub fn of(call: &syn::Macro) -> syn::Result<Matches> {
        call.parse_body_with(|input: ParseStream| {
            let subject: Expr = input.parse()?;
            input.parse::<Token![,]>()?;
            let pattern = Pat::parse_multi_with_leading_vert(input)?;
            let guard = match input.parse::<Option<Token![if]>>()? {
                Some(word) => Some((word, input.parse::<Expr>()?)),
                None => None,
            };
            input.parse::<Option<Token![,]>>()?;
            Ok(Matches {
                subject,
                pattern,
                guard,
            })
        })
    }
}

/// Whether it is `+=` or its like.
pub fn assigns(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

impl Visit<'_> for Changed {
    fn visit_block(&mut self, block: &Block) {
        self.scopes.push(HashSet::new());
        visit::visit_block(self, block);
        self.scopes.pop();
    }

    fn visit_local(&mut self, local: &syn::Local) {
        // What stands behind `=` does not see the new name yet.
        if let Some(init) = &local.init {
            self.visit_expr(&init.expr);
        }
        // One that may not be there hides nothing.
        if attributes::of_local(local).is_empty() {
            self.visit_pat(&local.pat);
        }
    }

    fn visit_pat(&mut self, pat: &Pat) {
        if let Pat::Ident(name) = pat
            && let Some(scope) = self.scopes.last_mut()
        {
            scope.insert(name.ident.to_string());
        }
        visit::visit_pat(self, pat);
    }

    fn visit_expr_for_loop(&mut self, for_: &syn::ExprForLoop) {
        self.visit_expr(&for_.expr);
        self.scopes.push(HashSet::new());
        self.visit_pat(&for_.pat);
        self.visit_block(&for_.body);
        self.scopes.pop();
    }

    fn visit_arm(&mut self, arm: &syn::Arm) {
        self.scopes.push(HashSet::new());
        visit::visit_arm(self, arm);
        self.scopes.pop();
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        inside(call).iter().for_each(|part| self.visit_expr(part));
    }

    fn visit_expr_assign(&mut self, assign: &syn::ExprAssign) {
        self.change(&assign.left);
        visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_binary(&mut self, binary: &syn::ExprBinary) {
        if assigns(&binary.op) {
            self.change(&binary.left);
        }
        visit::visit_expr_binary(self, binary);
    }
}
