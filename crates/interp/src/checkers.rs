//! The small checkers: out of bounds, reads of what was never written, copies never waited for,
//! values that are not as uniform as asserted.

use std::collections::{BTreeMap, HashMap};

use invar_ir::{AddressSpace, Diagnostic, Rule, Scope};

use crate::dispatch::GridSizes;
use crate::observe::{
    Access, AsyncCopy, Kind, Launch, Misaligned, ObjectInfo, Observer, OutOfBounds, SiteInfo,
    Touched, Who,
};

/// What messages need to know of a run.
#[derive(Default)]
pub(crate) struct About {
    pub(crate) sites: Vec<SiteInfo>,
    pub(crate) objects: Vec<ObjectInfo>,
    grid: Option<GridSizes>,
    simdgroup_size: u32,
}

impl About {
    pub(crate) fn of(launch: &Launch) -> About {
        About {
            sites: launch.sites.to_vec(),
            objects: launch.objects.to_vec(),
            grid: Some(launch.grid),
            simdgroup_size: launch.simdgroup_size,
        }
    }

    pub(crate) fn thread(&self, who: Who, lane: u32) -> String {
        let Some(grid) = self.grid else {
            return String::new();
        };
        let group = grid.position(who.threadgroup);
        let number = who.simdgroup * self.simdgroup_size + lane;
        let thread = GridSizes::thread_position(grid.size(group), number);
        let text = |p: [u32; 3]| format!("({}, {}, {})", p[0], p[1], p[2]);
        format!("thread {} of threadgroup {}", text(thread), text(group))
    }
}

/// Reports accesses out of bounds (B1 to B4), once for each place, unless the kernel says that they
/// are meant.
#[derive(Default)]
pub struct OutOfBoundsAccesses {
    about: About,
    allow_loads: bool,
    allow_stores: bool,
    found: BTreeMap<u32, Found>,
    /// Loads whose values a `select` has not yet taken, by threadgroup, simdgroup and site: the lanes.
    open: HashMap<(u64, u32, u32), u128>,
    /// What is said of such a place if no `select` takes any of them.
    discarded: BTreeMap<u32, Found>,
}

/// What is said of a place: of its first access, with the number of all and the object.
struct Found {
    message: String,
    count: u64,
    object: Option<u32>,
    /// Whether it is a load.
    loads: bool,
}

impl Observer for OutOfBoundsAccesses {
    fn wants(&self, _object: &ObjectInfo) -> bool {
        false
    }

    fn begin(&mut self, launch: &Launch) -> Result<(), Diagnostic> {
        self.about = About::of(launch);
        self.allow_loads = launch.kernel.allow_out_of_bounds_loads;
        self.allow_stores = launch.kernel.allow_out_of_bounds_stores;
        Ok(())
    }

    fn out_of_bounds(&mut self, event: &OutOfBounds) {
        if if event.load {
            self.allow_loads
        } else {
            self.allow_stores
        } {
            return;
        }
        let about = &self.about;
        let may_be_discarded = event.load && about.sites[event.site as usize].selected;
        let of = if may_be_discarded {
            let at = (event.who.threadgroup, event.who.simdgroup, event.site);
            *self.open.entry(at).or_default() |= event.lanes;
            &mut self.discarded
        } else {
            &mut self.found
        };
        let found = of.entry(event.site).or_insert_with(|| {
            let thread = about.thread(event.who, event.lane);
            let object = event.object.map(|object| &about.objects[object as usize]);
            let message = match object {
                Some(ObjectInfo {
                    name,
                    imageblock: Some([width, height]),
                    ..
                }) if event.within.is_none() => format!(
                    "{thread} {} outside of imageblock `{name}`, which is {width} by {height}",
                    if event.load { "reads" } else { "writes" },
                ),
                Some(object) => format!(
                    "{thread} {} {} {} of `{}`, which has {}",
                    if event.load { "reads" } else { "writes" },
                    event.what,
                    event.index,
                    match event.within {
                        Some((element, inside)) => {
                            format!("{}{inside}", object.element_name(element))
                        }
                        None => object.name.clone(),
                    },
                    event.length,
                ),
                None => format!(
                    "{thread} uses component {} of a value that has {}",
                    event.index, event.length
                ),
            };
            Found {
                message,
                count: 0,
                object: event.object,
                loads: event.load,
            }
        });
        found.count = found.count.saturating_add(event.count);
    }

    fn selected(&mut self, who: Who, site: u32, lanes: u128, taken: u128) {
        let Some(open) = self.open.get_mut(&(who.threadgroup, who.simdgroup, site)) else {
            return;
        };
        let used = *open & taken;
        *open &= !lanes;
        if used != 0
            && let Some(found) = self.discarded.remove(&site)
        {
            self.found.entry(site).or_insert(found);
        }
    }

    fn end_threadgroup(&mut self, who: Who) {
        self.open
            .retain(|(threadgroup, ..), _| *threadgroup != who.threadgroup);
    }

    fn finish(&mut self) -> Vec<Diagnostic> {
        self.found().into_iter().map(|(_, d)| d).collect()
    }
}

impl OutOfBoundsAccesses {
    /// What was found, each with its object.
    pub(crate) fn found(&mut self) -> Vec<(Option<u32>, Diagnostic)> {
        let errors = std::mem::take(&mut self.found);
        let mut discarded = std::mem::take(&mut self.discarded);
        // Of a place of which some values were used, that is the finding.
        discarded.retain(|site, _| !errors.contains_key(site));
        let errors = errors.into_iter().map(|(site, found)| (site, found, false));
        let discarded = discarded
            .into_iter()
            .map(|(site, found)| (site, found, true));
        (errors.chain(discarded))
            .map(|(site, found, discarded)| {
                let Found {
                    message,
                    count,
                    object: number,
                    loads,
                } = found;
                let more = match count {
                    1 => String::new(),
                    n => format!("; {n} accesses here are out of bounds"),
                };
                let span = self.about.sites[site as usize].span;
                if discarded {
                    let message = format!("{message}, and a `select` throws the value away{more}");
                    let found = Diagnostic::warning(Rule::DiscardedLoad, span, message);
                    let found = found
                        .help("load inside of an `if` instead, so that the access is not made");
                    return (number, found);
                }
                let found = Diagnostic::error(Rule::OutOfBounds, span, format!("{message}{more}"));
                let meant = match loads {
                    true => "`allow(out_of_bounds_loads)` or `allow(out_of_bounds_stores)`",
                    false => "`allow(out_of_bounds_stores)` or `allow(out_of_bounds_loads)`",
                };
                let object = number.map(|object| &self.about.objects[object as usize]);
                let sized = match object {
                    Some(object) if object.texture.is_some() => "pass a larger texture",
                    _no_texture => "size the buffer",
                };
                let found = found.help(format!(
                    "guard the access or {sized}; if it is meant, say {meant} on the kernel"
                ));
                (number, found)
            })
            .collect()
    }
}

/// Reports addresses that are not multiples of what is accessed there (L4), once for each place.
#[derive(Default)]
pub struct MisalignedAccesses {
    about: About,
    /// The first site of each place in the source: components of a vector are accessed one by one.
    found: Vec<(u32, String, u64)>,
}

impl Observer for MisalignedAccesses {
    fn wants(&self, _object: &ObjectInfo) -> bool {
        false
    }

    fn begin(&mut self, launch: &Launch) -> Result<(), Diagnostic> {
        self.about = About::of(launch);
        Ok(())
    }

    fn misaligned(&mut self, event: &Misaligned) {
        let span = |site: u32| self.about.sites[site as usize].span;
        let here = span(event.site);
        if let Some(known) = self.found.iter_mut().find(|(site, ..)| span(*site) == here) {
            known.2 = known.2.saturating_add(event.count);
            return;
        }
        let thread = self.about.thread(event.who, event.lane);
        let message = format!(
            "{thread} accesses {} bytes at byte {}, which is not a multiple of {}",
            event.width, event.offset, event.width
        );
        self.found.push((event.site, message, event.count));
    }

    fn finish(&mut self) -> Vec<Diagnostic> {
        let found = std::mem::take(&mut self.found).into_iter();
        let all = found.map(|(site, message, count)| {
            let more = match count {
                1 => String::new(),
                n => format!("; {n} accesses here are misaligned"),
            };
            let span = self.about.sites[site as usize].span;
            Diagnostic::error(Rule::MisalignedAccess, span, format!("{message}{more}")).help(
                "pass strides and offsets that are multiples of the type's size, or access narrower values",
            )
        });
        all.collect()
    }
}

/// Warns of plain reads of threadgroup memory that nothing has written: they give 0 (I2), which is
/// seldom what was meant; kernels may say that it is.
#[derive(Default)]
pub struct UninitialisedReads {
    about: About,
    allow: bool,
    /// For each slot and object, a bit for each location that was written.
    written: Vec<Vec<Vec<u64>>>,
    found: BTreeMap<(u32, u32), (Who, u32, u64, u64)>,
}

impl UninitialisedReads {
    fn bits(&mut self, who: Who, object: u32) -> &mut Vec<u64> {
        let slot = who.slot as usize;
        if self.written.len() <= slot {
            self.written.resize_with(slot + 1, Vec::new);
        }
        if self.written[slot].is_empty() {
            let sizes = self.about.objects.iter().map(|o| match o.space {
                AddressSpace::Threadgroup => (o.length * o.element_locations).div_ceil(64),
                AddressSpace::Device
                | AddressSpace::Constant
                | AddressSpace::Thread
                | AddressSpace::Texture
                // Kernels may count on its zeros (I2).
                | AddressSpace::Imageblock => 0,
            });
            self.written[slot] = sizes.map(|n| vec![0; n as usize]).collect();
        }
        &mut self.written[slot][object as usize]
    }

    fn mark(&mut self, who: Who, region: &Touched) {
        if self.about.objects[region.object as usize].space != AddressSpace::Threadgroup {
            return;
        }
        let bits = self.bits(who, region.object);
        for location in region.ranges.iter().cloned().flatten() {
            bits[(location / 64) as usize] |= 1 << (location % 64);
        }
    }

    fn note(&mut self, who: Who, site: u32, object: u32, lane: u32, location: u64) {
        let entry = self.found.entry((site, object));
        entry.or_insert((who, lane, location, 0)).3 += 1;
    }
}

impl Observer for UninitialisedReads {
    fn wants(&self, object: &ObjectInfo) -> bool {
        !self.allow && object.space == AddressSpace::Threadgroup
    }

    fn begin(&mut self, launch: &Launch) -> Result<(), Diagnostic> {
        *self = UninitialisedReads {
            about: About::of(launch),
            allow: launch.kernel.allow_uninitialised_reads,
            ..UninitialisedReads::default()
        };
        Ok(())
    }

    fn begin_threadgroup(&mut self, who: Who, _threads: u32) {
        if let Some(slot) = self.written.get_mut(who.slot as usize) {
            slot.iter_mut().for_each(|bits| bits.fill(0));
        }
    }

    fn access(&mut self, access: &Access) {
        if self.allow
            || self.about.objects[access.object as usize].space != AddressSpace::Threadgroup
        {
            return;
        }
        let width = u64::from(access.width);
        let bits = self.bits(access.who, access.object);
        let mut missing = Vec::new();
        crate::access::for_each_lane(access.lanes, |lane| {
            let first = access.locations[lane];
            for location in first..first + width {
                let (word, bit) = ((location / 64) as usize, 1u64 << (location % 64));
                match access.kind {
                    Kind::Write | Kind::Atomic { .. } => bits[word] |= bit,
                    Kind::Read => {
                        if bits[word] & bit == 0 {
                            missing.push((lane as u32, location));
                        }
                    }
                }
            }
        });
        for (lane, location) in missing {
            self.note(access.who, access.site, access.object, lane, location);
        }
    }

    fn collective(&mut self, who: Who, site: u32, kind: Kind, region: Touched, _same: &[bool]) {
        if self.allow
            || self.about.objects[region.object as usize].space != AddressSpace::Threadgroup
        {
            return;
        }
        if kind != Kind::Read {
            self.mark(who, &region);
            return;
        }
        let bits = self.bits(who, region.object);
        let missing = region.ranges.iter().cloned().flatten();
        let missing: Vec<u64> = missing
            .filter(|l| bits[(l / 64) as usize] >> (l % 64) & 1 == 0)
            .collect();
        for location in missing {
            self.note(who, site, region.object, 0, location);
        }
    }

    fn issue(&mut self, copy: &AsyncCopy) {
        // What reads before the copy has arrived is a race, not this.
        self.mark(copy.who, &copy.destination);
    }

    fn finish(&mut self) -> Vec<Diagnostic> {
        self.found().into_iter().map(|(_, d)| d).collect()
    }
}

impl UninitialisedReads {
    /// What was found, each with its object.
    pub(crate) fn found(&mut self) -> Vec<(Option<u32>, Diagnostic)> {
        let found = std::mem::take(&mut self.found);
        found
            .into_iter()
            .map(|((site, object), (who, lane, location, count))| {
                let name = self.about.objects[object as usize].location_name(location);
                let thread = self.about.thread(who, lane);
                let more = match count {
                    1 => String::new(),
                    2 => "; so does 1 more read here".to_string(),
                    n => format!("; so do {} more reads here", n - 1),
                };
                let found = Diagnostic::warning(
                    Rule::UninitialisedRead,
                    self.about.sites[site as usize].span,
                    format!("{thread} reads `{name}`, which nothing has written{more}"),
                );
                (
                    Some(object),
                    found.help(
                        "it is 0 (I2); if that is meant, store the 0, or say \
                         `allow(uninitialised_reads)` on the kernel",
                    ),
                )
            })
            .collect()
    }
}

/// Warns of async copies whose event nothing waits for.
#[derive(Default)]
pub struct NeverWaited {
    about: About,
    found: BTreeMap<u32, u64>,
}

impl Observer for NeverWaited {
    fn wants(&self, _object: &ObjectInfo) -> bool {
        false
    }

    fn begin(&mut self, launch: &Launch) -> Result<(), Diagnostic> {
        self.about = About::of(launch);
        Ok(())
    }

    fn never_waited(&mut self, _who: Who, site: u32) {
        *self.found.entry(site).or_default() += 1;
    }

    fn finish(&mut self) -> Vec<Diagnostic> {
        let found = std::mem::take(&mut self.found);
        found
            .into_iter()
            .map(|(site, count)| {
                let times = match count {
                    1 => "once".to_string(),
                    n => format!("{n} times"),
                };
                Diagnostic::warning(
                    Rule::NeverWaited,
                    self.about.sites[site as usize].span,
                    format!("the event of this async copy is never waited for ({times})"),
                )
                .help("`wait` for it before its data is used; it is finished only when the threadgroup ends")
            })
            .collect()
    }
}

/// Reports values that were asserted uniform and are not (X5).
#[derive(Default)]
pub struct UniformityDisagreements {
    about: About,
    found: BTreeMap<u32, (Who, Scope, [u64; 2])>,
}

impl Observer for UniformityDisagreements {
    fn wants(&self, _object: &ObjectInfo) -> bool {
        false
    }

    fn begin(&mut self, launch: &Launch) -> Result<(), Diagnostic> {
        self.about = About::of(launch);
        Ok(())
    }

    fn not_uniform(&mut self, who: Who, site: u32, scope: Scope, values: [u64; 2]) {
        self.found.entry(site).or_insert((who, scope, values));
    }

    fn finish(&mut self) -> Vec<Diagnostic> {
        let found = std::mem::take(&mut self.found);
        found
            .into_iter()
            .map(|(site, (who, scope, [a, b]))| {
                let scope = scope.name();
                Diagnostic::error(
                    Rule::UniformityDisagreement,
                    self.about.sites[site as usize].span,
                    format!(
                        "threads of a {scope} disagree on a value that is asserted to be uniform: \
                         some have the bits {a:#x}, others, in the simdgroup of {}, {b:#x}",
                        self.about.thread(who, 0)
                    ),
                )
                .help(
                    "assert it only of values that really agree; everyone got the first of the two",
                )
            })
            .collect()
    }
}
