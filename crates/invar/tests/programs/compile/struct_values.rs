use invar::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, KernelData)]
#[repr(C)]
struct Span {
    low: u32,
    high: u32,
}

#[device_fn]
fn joined(a: Span, b: Span) -> Span {
    Span { low: min(a.low, b.low), high: max(a.high, b.high) }
}

#[kernel]
fn all(spans: &[Span], out: &mut [Span]) {
    let mut whole = spans[0];
    for i in 1..spans.len() {
        whole = joined(whole, spans[i]);
    }
    out[0] = Span { low: 0, ..whole };
}

fn main() -> invar::Result<()> {
    let spans = [Span { low: 5, high: 6 }, Span { low: 2, high: 9 }];
    let mut out = [spans[0]];
    all::check(Grid::threads(1), &spans, &mut out)?.into_result()?;
    assert_eq!(out, [Span { low: 0, high: 9 }]);
    Ok(())
}
