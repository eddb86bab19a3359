//! What a kernel needs the value of before it runs, and that has none: it depends on function constants.

use std::collections::HashSet;

use invar_ir::{Diagnostic, Rule};
use invar_llvm::foreign::Param;

use crate::needed::unknown;
use crate::objects::Root;
use crate::translator::{Done, Translator};

/// At most so many names stand in a sentence.
const LISTED: usize = 12;

/// Names in a sentence, the first dozen of them.
pub(crate) fn listed(names: &[String]) -> String {
    let mut all: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| format!("`{name}`"))
        .collect();
    if names.len() > LISTED {
        all.push(format!("and {} more", names.len() - LISTED));
    }
    all.join(", ")
}

impl Translator<'_> {
    /// A parameter that is there only with a constant, which has no value.
    pub fn unset_param(&self, param: &Param) -> Diagnostic {
        let mut all = param.annotations.iter();
        let condition = all.find_map(|(name, _)| name.strip_prefix("msl.if "));
        let condition = condition.unwrap_or_default();
        let words = condition.split(|c: char| !c.is_alphanumeric() && c != '_');
        let unset = words.filter(|word| self.unset.iter().any(|u| u == word));
        self.without_value(
            &format!(
                "whether there is a parameter `{}` depends on `{condition}`",
                param.name
            ),
            condition,
            unset.map(String::from).collect(),
        )
    }

    /// Refuses a kernel that needs the value of a variable that has none.
    pub fn refuse_unknown(&mut self) -> Done<()> {
        let Some((inst, global)) = unknown(self.f, &self.objects) else {
            return Ok(());
        };
        self.at(self.f.insts[inst].location);
        Err(self.unset(&self.f.globals[global].name))
    }

    /// The kernel needs the value of a variable that has none before it runs.
    pub fn unset(&self, name: &str) -> Diagnostic {
        let mut read: Vec<String> = Vec::new();
        for (number, global) in self.f.globals.iter().enumerate() {
            if self.objects.accesses.contains_key(&Root::Global(number)) {
                let itself = (global.section == "function_constant").then_some(&global.name);
                let names = global.computed_from.iter().flatten().chain(itself);
                read.extend(names.filter(|name| self.unset.contains(name)).cloned());
            }
        }
        self.without_value(&format!("the kernel depends on `{name}`"), name, read)
    }

    /// What depends on a variable, and the function constants that the kernel reads and that have no value.
    fn without_value(&self, what: &str, name: &str, mut read: Vec<String>) -> Diagnostic {
        let mut seen = HashSet::new();
        read.retain(|name| seen.insert(name.clone()));
        let message = match &read[..] {
            [] => {
                let help = "write its numbers, or make what its initialiser calls `constexpr`";
                let message = format!("{what}, whose initialiser is no constant expression");
                return Diagnostic::error(Rule::FunctionConstant, self.k.span(), message)
                    .help(help);
            }
            [one] if one == name => format!("{what}, a function constant without a value"),
            _several => format!(
                "{what}, and these function constants that the kernel reads have no value: {}",
                listed(&read)
            ),
        };
        Diagnostic::error(Rule::FunctionConstant, self.k.span(), message)
            .help("give each a value with --const NAME=VALUE")
    }
}
