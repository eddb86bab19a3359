//! A progress bar for runs that take over a second, where a person looks.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use invar_interp::Observer;
use invar_interp::observe::ObjectInfo;

/// Runs shorter than this show no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Watches a run's progress and nothing else.
pub struct Bar {
    start: Instant,
    bar: Option<ProgressBar>,
    terminal: bool,
}

impl Bar {
    /// A bar that appears when the run has taken long enough.
    pub fn new() -> Bar {
        Bar {
            start: Instant::now(),
            bar: None,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// So many threadgroups of all are done.
    fn at(&mut self, done: u64, total: u64) {
        if !self.terminal || self.start.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new(total);
            let style = "{bar:40} {pos}/{len} threadgroups, {eta} left";
            bar.set_style(
                ProgressStyle::with_template(style)
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar
        });
        bar.set_position(done);
    }
}

impl Observer for Bar {
    fn wants(&self, _object: &ObjectInfo) -> bool {
        false
    }

    fn progress(&mut self, done: u64, total: u64) -> ControlFlow<()> {
        self.at(done, total);
        ControlFlow::Continue(())
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
