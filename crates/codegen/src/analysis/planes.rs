//! Neighbours in three dimensions: loads from the planes in front of a thread and behind it.
//!
//! Rows of threads that run together load once what several of them read. A stencil that reads little of its own plane
//! but its row gains nothing, for each plane is far away from the next; then whole rows are better, which
//! processors foresee: for stencils of 7 or 13 points in three dimensions.
//!
//! Deliberately absent: stencils of two dimensions; neighbours that loops go through.

use invar_ir::inst::{InstKind, Width};
use invar_ir::{Dim, Kernel, Memory};

use super::affine::{Affine, Product, Sum, Symbol};
use crate::tuning::{LEAST_SHARED_LOADS, PLANES_APART, ROWS_TOGETHER};

/// Loads that are looked at, at most.
const MOST_LOADS: usize = 64;

/// Whether a kernel loads from neighbouring planes, and rows of threads together would load nearly as much as each by
/// itself.
pub fn gain_nothing_by_rows(kernel: &Kernel, affine: &Affine<'_>) -> bool {
    let mut loads: Vec<(Memory, Sum<Product>)> = Vec::new();
    kernel.for_each_inst(&mut |inst| {
        let InstKind::Load(place) = &inst.kind else {
            return;
        };
        let index = (place.memory, affine.of(place.index).sum);
        if place.width == Width::One && !loads.contains(&index) {
            loads.push(index);
        }
    });
    if loads.len() > MOST_LOADS {
        return false;
    }
    let pitch = |sum: &Sum<Product>, dim| {
        let found = sum.coefficient(Symbol::Thread(dim));
        found.filter(|pitch| *pitch != Sum::constant(0))
    };
    let planes = |(memory, index): &(Memory, Sum<Product>)| {
        pitch(index, Dim::Z).is_some_and(|plane| {
            let mut others = loads.iter().filter(|(other, _)| other == memory);
            others.any(|(_, other)| {
                let difference = other.clone().plus(index, -1);
                let mut apart = 1..=PLANES_APART;
                apart.any(|k| difference.clone().plus(&plane, -k).as_constant().is_some())
            })
        })
    };
    if !loads.iter().any(planes) {
        return false;
    }
    let mut together: Vec<(Memory, Sum<Product>)> = Vec::new();
    for (memory, index) in &loads {
        let row = pitch(index, Dim::Y).unwrap_or(Sum::constant(0));
        for number in 0..ROWS_TOGETHER {
            let index = (*memory, index.clone().plus(&row, number));
            if !together.contains(&index) {
                together.push(index);
            }
        }
    }
    let apart = loads.len() * ROWS_TOGETHER as usize;
    apart - together.len() < apart / LEAST_SHARED_LOADS
}
