//! What a kernel requires of a launch (S5), as facts of a question: every launch fulfils it, for those that do
//! not are refused, and of what buffers hold it is promised.

use invar_ir::requires::{Comparison, Product, Relation, Sum};
use invar_ir::{Dim, Kernel, LaunchNumber, Memory, Module, Required, Requirement, Span};

use crate::condition::{Condition, Number};
use crate::launch::Launch;
use crate::linear::{Formula, Linear};
use crate::query::{Int, Query};
use crate::subject::Subject;

/// Larger numbers are not divided: the facts of a division have bounds.
const LARGEST_DIVIDED: i128 = 1 << 90;

impl Number {
    /// The number of a launch; `None` of an element.
    pub(crate) fn required(number: LaunchNumber) -> Option<Number> {
        Some(match number {
            LaunchNumber::Argument(place) => Number::Argument(place as usize),
            LaunchNumber::Constant(place) => Number::Constant(place as usize),
            LaunchNumber::Length(place) => Number::Length(place as usize),
            LaunchNumber::Grid(dim) => Number::Grid(dim),
            LaunchNumber::Groups(dim) => Number::Groups(dim),
            LaunchNumber::Threadgroup(dim) => Number::Threadgroup(dim),
            LaunchNumber::Texels(place, dim) => Number::Texels(place as usize, dim),
            LaunchNumber::Levels(place) => Number::Levels(place as usize),
            LaunchNumber::Field(place, location) => Number::Field(place as usize, location),
            LaunchNumber::Element => return None,
        })
    }
}

/// That launches of a kernel have whole threadgroups only, as requirements: dimension by dimension in which a
/// threadgroup has more than one thread.
fn whole(kernel: &Kernel) -> impl Iterator<Item = Requirement> {
    let size = kernel.threadgroup_size.unwrap_or([1; 3]);
    let side = |factor, numbers, modulus| Sum {
        products: vec![Product { factor, numbers }],
        modulus,
    };
    let sizes = Dim::ALL.into_iter().zip(size);
    let wide = sizes.filter(|(_, size)| *size > 1);
    wide.map(move |(d, size)| Requirement {
        required: Required::Holds(Comparison {
            left: side(1, vec![LaunchNumber::Grid(d)], Some(size)),
            relation: Relation::Equal,
            right: side(0, Vec::new(), None),
        }),
        span: Span::NONE,
    })
}

/// Whether a requirement says no more than that threadgroups are whole.
pub fn is_of_whole_threadgroups(kernel: &Kernel, requirement: &Requirement) -> bool {
    whole(kernel).any(|w| w.required == requirement.required)
}

/// Whether a requirement says no more than what the type of a variable of a shader does: how many elements it has.
pub fn is_of_a_type(kernel: &Kernel, requirement: &Requirement) -> bool {
    let Required::Holds(Comparison {
        left,
        relation: Relation::Equal,
        right,
    }) = &requirement.required
    else {
        return false;
    };
    let [left, right] = [left, right].map(|sum| match &sum.products[..] {
        [one] if sum.modulus.is_none() => Some((one.factor, &one.numbers[..])),
        _other => None,
    });
    let (Some((1, [LaunchNumber::Length(place)])), Some((_, []))) = (left, right) else {
        return false;
    };
    let parameter = kernel.params.get(*place as usize);
    parameter.is_some_and(|parameter| parameter.binding.is_some())
}

/// Has every kernel of a module that says how large its threadgroups are require that those are whole, as where
/// a dispatch counts them: so it is for WebGPU. What is proved, and what is checked by a certificate, is then of
/// such launches only, and the report says so.
///
/// ```
/// use invar_ir::{text, verify};
/// use invar_prove::{Options, prove, with_whole_threadgroups};
///
/// let text = "kernel @last(%x: device write u32) threadgroup(64) {
///     %i = thread_position_in_grid x
///     store %x[%i], %i
/// }";
/// let mut module = text::parse("last.inv", text)?;
/// with_whole_threadgroups(&mut module);
/// let report = prove(&verify(module)?, "last", &[], Options::default()).expect("there is such a kernel");
/// assert!(report.launches().starts_with("every one-dimensional launch of whole threadgroups with"));
/// # Ok::<(), invar_ir::Diagnostics>(())
/// ```
pub fn with_whole_threadgroups(module: &mut Module) {
    for kernel in &mut module.kernels {
        let more: Vec<Requirement> = whole(kernel).collect();
        kernel.requires.extend(more);
    }
}

/// Whether a launch fulfils a requirement of its numbers; `None` if it does not say.
pub fn holds(requirement: &Requirement, launch: &Launch) -> Option<bool> {
    match &requirement.required {
        Required::Holds(comparison) => comparison.holds(&|number| of_launch(number, launch)),
        Required::Each { .. } | Required::Ascending { .. } => None,
    }
}

/// What a launch says that a number of it is; `None` of an element.
pub fn of_launch(number: LaunchNumber, launch: &Launch) -> Option<i128> {
    Number::required(number)?.of(launch)
}

/// Whether a comparison holds of an element in a launch.
pub fn holds_of(comparison: &Comparison, launch: &Launch, element: i128) -> Option<bool> {
    comparison.holds(&|number| match number {
        LaunchNumber::Element => Some(element),
        another => of_launch(another, launch),
    })
}

/// The number that is required to be a multiple, and of what: `%n % 4 == 0`.
pub(crate) fn multiple(requirement: &Requirement) -> Option<Condition> {
    let Required::Holds(comparison) = &requirement.required else {
        return None;
    };
    let of = comparison.left.modulus?;
    let is_zero = |sum: &Sum| {
        let plain = |p: &Product| p.factor == 0 && p.numbers.is_empty();
        sum.modulus.is_none() && sum.products.iter().all(plain)
    };
    let [product] = &comparison.left.products[..] else {
        return None;
    };
    let plain = comparison.relation == Relation::Equal && is_zero(&comparison.right);
    match &product.numbers[..] {
        [number] if plain && product.factor == 1 => {
            Some(Condition::Multiple(Number::required(*number)?, of.into()))
        }
        _several => None,
    }
}

impl Subject<'_> {
    /// A question, with what the kernel requires and the conditions that are assumed.
    pub fn query(&self, same: bool) -> (Query, Vec<(usize, usize)>) {
        let mut q = Query::new(same);
        let mut marks = Vec::new();
        self.prepare_required(&mut q);
        for (number, condition) in self.conditions.borrow().iter().enumerate() {
            condition.prepare(self, number, &mut q);
        }
        self.say_required(&mut q);
        for (number, condition) in self.conditions.borrow().iter().enumerate() {
            if let Some(fact) = condition.say(self, &mut q) {
                marks.push((q.problem.facts.len(), number));
                q.problem.facts.push(fact);
            }
        }
        (q, marks)
    }

    /// Has a question write the numbers that are required to be multiples as such, before anything else is
    /// said.
    pub fn prepare_required(&self, q: &mut Query) {
        for requirement in &self.kernel.requires {
            if let Some(condition) = multiple(requirement) {
                // No condition that is looked for: it has no place among those.
                condition.prepare(self, usize::MAX, q);
            }
        }
    }

    /// Says what is required of the numbers of a launch.
    pub fn say_required(&self, q: &mut Query) {
        for requirement in &self.kernel.requires {
            let fact = match (&requirement.required, multiple(requirement)) {
                (_, Some(condition)) => condition.say(self, q),
                (Required::Holds(comparison), None) => self.compared(q, comparison, None),
                (Required::Each { .. } | Required::Ascending { .. }, None) => None,
            };
            q.say(fact);
        }
    }

    /// Whether something is required of a number of a launch.
    pub fn is_required(&self, number: Number) -> bool {
        let is = |n: LaunchNumber| Number::required(n) == Some(number);
        self.kernel.requires.iter().any(|r| match &r.required {
            Required::Holds(comparison) => comparison.numbers().into_iter().any(is),
            Required::Each { .. } | Required::Ascending { .. } => false,
        })
    }

    /// Whether something is required of what an object holds.
    fn has_required_contents(&self, memory: Memory) -> bool {
        self.kernel.requires.iter().any(|r| match &r.required {
            Required::Holds(_) => false,
            Required::Each { buffer, .. } | Required::Ascending { buffer } => {
                memory == Memory::Param(*buffer)
            }
        })
    }

    /// Says what is required of a load, given those of the same object before: each has its index and what
    /// it gives.
    pub fn say_loaded(
        &self,
        q: &mut Query,
        memory: Memory,
        before: &[(Linear, Linear)],
        (index, loaded): (&Int, &Linear),
    ) {
        if !self.has_required_contents(memory) {
            return;
        }
        let length = self.length(q, memory).form;
        let zero = Linear::constant(0);
        let outside = |at: &Linear| {
            let sides = [Formula::lt(at, &zero), Formula::le(&length, at)];
            let sides: Option<Vec<Formula>> = sides.into_iter().collect();
            sides.map(Formula::any)
        };
        let Some(beyond) = outside(&index.form) else {
            return;
        };
        // What is out of bounds is not an element, and gives 0 (B1).
        let inside = beyond.negated();
        let is_zero = Formula::eq(loaded, &zero);
        if let (Some(inside), Some(is_zero)) = (inside, is_zero) {
            q.say(Some(Formula::any([inside, is_zero])));
        }
        for requirement in &self.kernel.requires {
            match &requirement.required {
                Required::Each {
                    buffer, comparison, ..
                } if memory == Memory::Param(*buffer) => {
                    let fact = self.compared(q, comparison, Some(loaded));
                    q.say(fact.map(|fact| Formula::any([beyond.clone(), fact])));
                }
                Required::Ascending { buffer } if memory == Memory::Param(*buffer) => {
                    for (at, other) in before {
                        let Some(also_beyond) = outside(at) else {
                            continue;
                        };
                        let ordered = |first: (&Linear, &Linear), second: (&Linear, &Linear)| {
                            let apart = Formula::lt(second.0, first.0)?;
                            let ascending = Formula::le(first.1, second.1)?;
                            let beyond = [beyond.clone(), also_beyond.clone()];
                            Some(Formula::any(beyond.into_iter().chain([apart, ascending])))
                        };
                        let (one, two) = ((at, other), (&index.form, loaded));
                        q.say(ordered(one, two));
                        q.say(ordered(two, one));
                    }
                }
                Required::Each { .. } | Required::Ascending { .. } | Required::Holds(_) => {}
            }
        }
    }

    /// A comparison as a formula; `None` where numbers get too large.
    fn compared(
        &self,
        q: &mut Query,
        comparison: &Comparison,
        element: Option<&Linear>,
    ) -> Option<Formula> {
        let a = self.side(q, &comparison.left, element)?;
        let b = self.side(q, &comparison.right, element)?;
        match comparison.relation {
            Relation::Equal => Formula::eq(&a, &b),
            Relation::NotEqual => Formula::ne(&a, &b),
            Relation::Less => Formula::lt(&a, &b),
            Relation::LessEqual => Formula::le(&a, &b),
            Relation::Greater => Formula::lt(&b, &a),
            Relation::GreaterEqual => Formula::le(&b, &a),
        }
    }

    fn side(&self, q: &mut Query, side: &Sum, element: Option<&Linear>) -> Option<Linear> {
        let mut sum = Linear::constant(0);
        let mut largest = 0i128;
        for product in &side.products {
            let mut form = Linear::constant(product.factor);
            let mut most = product.factor.checked_abs()?;
            for number in &product.numbers {
                let int = match Number::required(*number) {
                    Some(number) => number.int(self, q),
                    // Elements are integers of at most 64 bits.
                    None => Int {
                        form: element?.clone(),
                        low: -(1 << 64),
                        high: 1 << 64,
                    },
                };
                form = q.product(&form, &int.form)?;
                most = most.saturating_mul(int.low.abs().max(int.high.abs()));
            }
            sum = sum.plus(1, &form)?;
            largest = largest.saturating_add(most);
        }
        match side.modulus {
            None => Some(sum),
            Some(_) if largest > LARGEST_DIVIDED => None,
            Some(modulus) => {
                let divided = Int {
                    form: sum,
                    low: -largest,
                    high: largest,
                };
                let (_, rest) = self.floor(q, &divided, modulus.into())?;
                Some(rest.form)
            }
        }
    }
}
