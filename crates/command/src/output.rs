//! How commands show what their runs found: in words, or as one JSON document at the end.

use invar::report;
use invar_ir::print::Printed;
use invar_ir::{Call, Diagnostic, Diagnostics, Severity, Source};
use invar_wgsl::Written;
use serde_json::{Value as Json, json};

use crate::console::{say, show};
use crate::options::count;
use crate::outcome::{Refusal, Verdict};
use crate::plan::{Inputs, Plan};
use crate::{input, shader};

/// Shows diagnostics, or keeps them for the JSON document.
pub struct Output<'a> {
    inputs: &'a Inputs,
    sources: Vec<Source>,
    calls: Vec<Call>,
    /// How a source has the elements of its kernels' parameters.
    written: Vec<Written>,
    results: Vec<Json>,
    /// What the next result's run has printed.
    printed: Option<Printed>,
    pub errors: bool,
    /// Whether the command leaves out what `--allow` says, as checks do.
    pub allows: bool,
    /// Runs that took no place.
    skipped: usize,
}

impl Output<'_> {
    /// For the runs of a plan; says which kernels have none, and which entry points are refused.
    pub fn new<'a>(inputs: &'a Inputs, plan: &Plan) -> Output<'a> {
        let mut output = Output::of(inputs, plan.sources.clone(), plan.calls.clone());
        output.written = invar_wgsl::written(&plan.module, &plan.entries);
        for (name, Diagnostics(why)) in &plan.refused {
            let closing = format!("refused @{name}");
            output.result(name, why, &closing, json!({"refused": true}));
        }
        for kernel in &plan.without_runs {
            let file = &inputs.file;
            let (line, sizes) = (shader::run_line(file), shader::size_options(file));
            let why = format!(
                "no `{line}` line names it; give its inputs: --kernel {kernel}, {sizes}, --arg"
            );
            output.leave_out(kernel, &why);
        }
        output
    }

    /// For a file of which nothing runs.
    fn of(inputs: &Inputs, sources: Vec<Source>, calls: Vec<Call>) -> Output<'_> {
        Output {
            inputs,
            sources,
            calls,
            written: Vec::new(),
            results: Vec::new(),
            printed: None,
            errors: false,
            allows: false,
            skipped: 0,
        }
    }

    fn leave_out(&mut self, kernel: &str, why: &str) {
        self.skipped += 1;
        let more = json!({"skipped": why});
        self.result(kernel, &[], &format!("skipped @{kernel}: {why}"), more);
    }

    /// Leaves out one of a file's runs. What the user asked for by itself is refused instead: an
    /// option that the place cannot meet, or the only run.
    pub fn skip(&mut self, plan: &Plan, kernel: &str, why: String) -> Result<(), Refusal> {
        let all = plan.cases.len() + plan.programs.len() + plan.without_runs.len();
        if self.inputs.simdgroup.is_some() || self.skipped + 1 == all {
            return Err(Refusal(format!("cannot run @{kernel}: {why}")));
        }
        self.leave_out(kernel, &why);
        Ok(())
    }

    /// Shows what a run printed, each line with the thread's position in the grid: among its results for
    /// machines.
    pub fn lines(&mut self, printed: &Printed) {
        if self.inputs.machine.json {
            self.printed = (!printed.lines.is_empty()).then(|| printed.clone());
            return;
        }
        for line in &printed.lines {
            let [x, y, z] = line.thread;
            show(&format!("[{x}, {y}, {z}] {line}"));
        }
        if let Some(notice) = printed.notice() {
            say(&notice);
        }
    }

    /// Shows one run's findings and its closing line.
    pub fn result(&mut self, kernel: &str, diagnostics: &[Diagnostic], closing: &str, more: Json) {
        let mut diagnostics = shader::advised(&self.inputs.file, diagnostics);
        for written in self.written.iter().filter(|w| w.kernel == kernel) {
            diagnostics.iter_mut().for_each(|d| written.tell(d));
        }
        if !self.allows {
            for help in diagnostics.iter_mut().filter_map(|d| d.help.as_mut()) {
                *help = help.replace("say `--allow ", "use `invar check --allow ");
            }
        }
        let diagnostics = &diagnostics;
        self.errors |= diagnostics.iter().any(|d| d.severity == Severity::Error);
        if self.inputs.machine.json {
            let mut one = json!({
                "kernel": kernel,
                "diagnostics": report::to_json(&self.sources, &self.calls, diagnostics),
            });
            if let (Some(one), Json::Object(more)) = (one.as_object_mut(), more) {
                one.extend(more);
                if let Some(printed) = self.printed.take() {
                    let lines = printed.lines.iter();
                    let lines = lines.map(
                        |l| json!({"thread": l.thread, "line": l.span.start.line, "text": l.text}),
                    );
                    one.insert("printed".to_string(), lines.collect());
                    one.insert("lines_left_out".to_string(), json!(printed.lost));
                }
            }
            self.results.push(one);
        } else {
            if !diagnostics.is_empty() {
                let text = report::render(&self.sources, &self.calls, diagnostics, input::style());
                say(text.trim_end());
            }
            if !closing.is_empty() {
                show(closing);
            }
        }
    }

    pub fn finish(self) -> Result<Verdict, Refusal> {
        if self.inputs.machine.json {
            let document = json!({
                "file": self.inputs.file.display().to_string(),
                "clean": !self.errors,
                "skipped": self.skipped,
                "results": self.results,
            });
            show(&serde_json::to_string_pretty(&document)?);
        } else if self.skipped > 0 {
            show(&format!("{} skipped", count(self.skipped, "run")));
        }
        Ok(if self.errors {
            Verdict::Errors
        } else {
            Verdict::Clean
        })
    }
}

pub fn refused(
    inputs: &Inputs,
    sources: Vec<Source>,
    calls: Vec<Call>,
    diagnostics: &[Diagnostic],
) -> Result<Verdict, Refusal> {
    let mut output = Output::of(inputs, sources, calls);
    output.result("", diagnostics, "", json!({}));
    output.finish()
}

/// A time with three digits.
pub fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "us"),
    };
    let digits = match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}
