//! Loads from what the dispatch does not write: each gives what its index and its way into the element say, so two of
//! one place give the same. A component of a vector that is loaded is as the load of that component.
//!
//! Integers that the first element of a buffer holds are numbers of the launch: fields of a struct of parameters. What
//! constant arrays hold is known, also of the components and fields of their elements: what lies between the least and the
//! largest that an index can reach, of a few numbers which is which, and where no two are the same that one number is of
//! one place.
//!
//! Deliberately absent: what other memory holds, but for what the kernel requires of it.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use invar_ir::requires::{Field, FieldStep};
use invar_ir::{ElementType, InstKind, Memory, Op, Place, Scalar, Step, Type, Value, Width};

use crate::condition::Number;
use crate::held::{Held, Reached};
use crate::linear::{Formula, Linear};
use crate::made;
use crate::query::{Int, Query, Way};
use crate::shape::{Definition, Statement};
use crate::subject::Subject;
use crate::thread::{Thread, range};

/// Of so many elements of a constant array it is said which is which.
const MOST_HELD: usize = 16;

impl Subject<'_> {
    /// What a load of an integer gives, or the component of one of integers.
    pub fn loaded(
        &self,
        q: &mut Query,
        t: &mut Thread,
        place: &Place,
        (ty, component): (Type, Option<i128>),
    ) -> Option<Int> {
        let (Type::Scalar(scalar) | Type::Vector(scalar, _)) = ty else {
            return None;
        };
        let is_one = matches!(ty, Type::Scalar(_)) == component.is_none();
        let fixed = self.module.is_read_only(self.kernel, place.memory);
        if place.width != Width::One || !is_one || !scalar.is_integer() || !fixed {
            return None;
        }
        let index = self.int(q, t, place.index)?;
        let (mut way, mut at) = (Way::new(), vec![index.form.clone()]);
        for step in &place.path {
            match step {
                Step::Field(field) => way.push(Some(*field)),
                Step::Index(value) => {
                    way.push(None);
                    at.push(self.int(q, t, *value)?.form);
                }
            }
        }
        if let Some(component) = component {
            way.push(None);
            at.push(Linear::constant(component));
        }
        self.load(q, (place.memory, way), (at, &index), scalar)
    }

    /// What the first element of a buffer holds at one of its locations.
    pub fn field(&self, q: &mut Query, place: usize, location: u32) -> Int {
        let loaded = self
            .field_place(place, location)
            .and_then(|(object, at, scalar)| self.load(q, object, (at, &Int::constant(0)), scalar));
        // Numbers too large for a fact: anything.
        loaded.unwrap_or_else(|| {
            let key = format!("any number of {place} at {location}");
            q.symbol(&key, -(1 << 63), 1 << 64)
        })
    }

    /// The name of a number with a name in the first element of a buffer, and where it lies between.
    pub fn field_key(&self, place: usize, location: u32) -> Option<(String, (i128, i128))> {
        let (object, at, scalar) = self.field_place(place, location)?;
        Some((key(&object, &at, 0), range(scalar)))
    }

    fn field_place(
        &self,
        place: usize,
        location: u32,
    ) -> Option<((Memory, Way), Vec<Linear>, Scalar)> {
        let field = Field::of(self.module, self.kernel, place as u32, location)?;
        let (mut way, mut at) = (Way::new(), vec![Linear::constant(0)]);
        for step in &field.path {
            match *step {
                FieldStep::Field(_, number) => way.push(Some(number)),
                FieldStep::Component(number) | FieldStep::Element(number) => {
                    way.push(None);
                    at.push(Linear::constant(number.into()));
                }
            }
        }
        Some(((Memory::Param(place as u32), way), at, field.scalar))
    }

    /// Says that buffers of whose elements the kernel requires something have a first one, and that fields are 0 of a
    /// buffer that has no element (B1).
    pub fn say_held(&self, q: &mut Query) {
        for (place, scalar) in made::of_elements(self.kernel) {
            let memory = Memory::Param(place);
            let length = self.length(q, memory).form;
            q.say(Formula::le(&Linear::constant(1), &length));
            let first = (vec![Linear::constant(0)], &Int::constant(0));
            self.load(q, (memory, Way::new()), first, scalar);
        }
        let fields = self.fields_loaded().into_iter();
        for number in fields.chain(made::fields_required(self.kernel)) {
            if let Number::Field(place, location) = number {
                let field = self.field(q, place, location).form;
                let length = self.length(q, Memory::Param(place as u32)).form;
                let some = Formula::le(&Linear::constant(1), &length);
                let is_zero = Formula::eq(&field, &Linear::constant(0));
                let either = some
                    .zip(is_zero)
                    .map(|(some, zero)| Formula::any([some, zero]));
                q.say(either);
            }
        }
    }

    /// The numbers with names that it loads from the first elements of buffers that it only reads.
    pub fn fields_loaded(&self) -> Vec<Number> {
        let mut found = Vec::new();
        for statement in &self.shape.statements {
            let number = match &statement.inst.kind {
                InstKind::Load(place) => {
                    let result = statement.inst.results.first();
                    let parts = result.and_then(|vector| self.parts(*vector));
                    if parts.is_some() && result.is_some_and(|vector| self.is_computed(*vector)) {
                        let numbers = (0..parts.unwrap_or(0)).map(i128::from);
                        let numbers = numbers.filter_map(|n| self.field_number(place, Some(n)));
                        found.extend(numbers.filter(|n| !found.contains(n)).collect::<Vec<_>>());
                    }
                    self.field_number(place, None)
                }
                InstKind::Op {
                    op: Op::Extract,
                    args,
                    ..
                } => match (self.shape.defining(args[0]), self.constant_of(args[1])) {
                    (Some(InstKind::Load(place)), Some(part)) => {
                        self.field_number(place, Some(part))
                    }
                    _computed => None,
                },
                _another => None,
            };
            if let Some(number) = number
                && !found.contains(&number)
            {
                found.push(number);
            }
        }
        found
    }

    /// Numbers of the launch that something is added to, or that are added: as they are, or as another type.
    pub fn added(&self) -> Vec<Number> {
        self.operands_of(|op| matches!(op, Op::Add | Op::Sub))
    }

    /// Numbers of the launch that something is multiplied by.
    pub fn multiplied(&self) -> Vec<Number> {
        self.operands_of(|op| op == Op::Mul)
    }

    /// Numbers of the launch that these operations take: as they are, or as another type.
    fn operands_of(&self, is_meant: impl Fn(Op) -> bool) -> Vec<Number> {
        let mut found = BTreeSet::new();
        let number = |value: &Value| {
            let mut value = *value;
            loop {
                match self.shape.definition(value)? {
                    Definition::Parameter(place) => return Some(Number::Argument(place)),
                    Definition::Result(id, _) => match self.shape.kind(id) {
                        InstKind::Op {
                            op: Op::Cast | Op::AsType,
                            args,
                            ..
                        } => value = *args.first()?,
                        InstKind::Texture {
                            texture: Memory::Param(i),
                            function,
                            ..
                        } => return Some(Number::Texels(*i as usize, function.extent()?)),
                        InstKind::BufferLength(Memory::Param(i)) => {
                            return Some(Number::Length(*i as usize));
                        }
                        InstKind::Load(place) => return self.field_number(place, None),
                        InstKind::Op {
                            op: Op::Extract,
                            args,
                            ..
                        } => {
                            let (Some(InstKind::Load(place)), part @ Some(_)) =
                                (self.shape.defining(args[0]), self.constant_of(args[1]))
                            else {
                                return None;
                            };
                            return self.field_number(place, part);
                        }
                        _another => return None,
                    },
                    Definition::Counter(_) | Definition::Carried(..) => return None,
                }
            }
        };
        for statement in &self.shape.statements {
            if let InstKind::Op { op, args, .. } = &statement.inst.kind
                && is_meant(*op)
            {
                found.extend(args.iter().filter_map(number));
            }
        }
        let is_count = |n: &Number| {
            let (least, most) = n.range(self);
            most - least > i128::from(u16::MAX)
        };
        found.into_iter().filter(is_count).collect()
    }

    /// Whether something is computed of a vector as a whole.
    fn is_computed(&self, vector: Value) -> bool {
        self.shape.statements.iter().any(|s| match &s.inst.kind {
            InstKind::Op { op, args, .. } => *op != Op::Extract && args.contains(&vector),
            _another => false,
        })
    }

    /// The number that a load gives, or a component of what it gives.
    pub fn field_number(&self, place: &Place, component: Option<i128>) -> Option<Number> {
        let Memory::Param(param) = place.memory else {
            return None;
        };
        let is_first = self.constant_of(place.index) == Some(0);
        // Of a list the first element is no number by reference.
        let is_list = |statement: &Statement<'_>| match &statement.inst.kind {
            InstKind::Load(other) => {
                other.memory == place.memory && self.constant_of(other.index) != Some(0)
            }
            _another => false,
        };
        if !is_first
            || self.shape.statements.iter().any(is_list)
            || place.width != Width::One
            || !self.module.is_read_only(self.kernel, place.memory)
        {
            return None;
        }
        let mut parts = Vec::new();
        for step in &place.path {
            parts.push(match step {
                Step::Field(number) => *number as usize,
                Step::Index(value) => usize::try_from(self.constant_of(*value)?).ok()?,
            });
        }
        parts.extend(component.and_then(|c| usize::try_from(c).ok()));
        let (location, scalar) = self.place_of_scalar(param, parts)?;
        let is_count = scalar.is_integer() && scalar.bits() >= 32;
        is_count.then_some(Number::Field(param as usize, location))
    }

    /// Whether an instruction loads from the first element of a buffer that is only read, at a place that constants say:
    /// what is passed by reference.
    pub fn is_passed(&self, kind: &InstKind) -> bool {
        let InstKind::Load(place) = kind else {
            return false;
        };
        self.module.is_read_only(self.kernel, place.memory)
            && self.constant_of(place.index) == Some(0)
            && Subject::steps(&place.path).all(|value| self.constant_of(value).is_some())
    }

    /// Whether an instruction loads from an array of constants, of which it is known what it holds.
    pub fn is_of_a_constant(kind: &InstKind) -> bool {
        matches!(kind, InstKind::Load(place) if matches!(place.memory, Memory::Constant(_)))
    }

    /// Where a path of fields and a component leads in the first element of a buffer, and to which scalar.
    fn place_of_scalar(&self, param: u32, path: Vec<usize>) -> Option<(u32, Scalar)> {
        let structs = &self.module.structs;
        let mut at = self
            .module
            .memory(self.kernel, Memory::Param(param))?
            .element
            .clone();
        let mut location = 0;
        for part in path {
            match &at {
                ElementType::Struct(id) => {
                    let fields = &structs.get(id.0 as usize)?.fields;
                    for (_, before) in fields.get(..part)? {
                        location += before.extent(structs)?.location_count;
                    }
                    at = fields.get(part)?.1.clone();
                }
                ElementType::Value(Type::Vector(scalar, count)) if part < usize::from(*count) => {
                    location += part as u64;
                    at = ElementType::Value(Type::Scalar(*scalar));
                }
                ElementType::Array(inner, count) if (part as u64) < u64::from(*count) => {
                    location += part as u64 * inner.extent(structs)?.location_count;
                    at = (**inner).clone();
                }
                ElementType::Value(_) | ElementType::Array(..) => return None,
            }
        }
        let ElementType::Value(Type::Scalar(scalar)) = at else {
            return None;
        };
        Some((u32::try_from(location).ok()?, scalar))
    }

    /// Which location of a buffer's first element is reached by a way with these indices, if it has a name.
    pub fn field_at(&self, param: u32, way: &Way, at: &[i128]) -> Option<u32> {
        let (0, mut rest) = (*at.first()?, at[1..].iter()) else {
            return None;
        };
        let mut path = Vec::new();
        for step in way {
            path.push(match step {
                Some(field) => usize::try_from(*field).ok()?,
                None => usize::try_from(*rest.next()?).ok()?,
            });
        }
        self.place_of_scalar(param, path)
            .map(|(location, _)| location)
    }

    /// The numbers of a constant array that a way into its elements with indices between these can reach; none of what is
    /// another object.
    fn reached(&self, object: &(Memory, Way), at: Vec<(i128, i128)>) -> Rc<Reached> {
        let key = (object.0, object.1.clone(), at);
        if let Some(known) = self.held.borrow().get(&key) {
            return known.clone();
        }
        let reached = Rc::new(Reached::of(self.held(object, &key.2)));
        self.held.borrow_mut().insert(key, reached.clone());
        reached
    }

    fn held(&self, (memory, way): &(Memory, Way), at: &[(i128, i128)]) -> Vec<Held> {
        let Memory::Constant(number) = memory else {
            return Vec::new();
        };
        let array = self.module.constants.get(*number as usize);
        let found = array.and_then(|array| {
            let each = array.element.extent(&self.module.structs)?.location_count;
            let (first, inner) = at.split_first()?;
            let mut all = Vec::new();
            let last = first.1.min(i128::from(array.length) - 1);
            for element in first.0.max(0)..=last {
                let start = u64::try_from(element).ok()? * each;
                let place = (start, vec![element]);
                self.scalars_of(&array.element, way, inner, place, &mut all);
            }
            let value = |(place, location): (Vec<i128>, u64)| {
                let value = array.values.get(usize::try_from(location).ok()?)?;
                let number = value
                    .scalar
                    .is_integer()
                    .then(|| value.scalar.integer(value.bits));
                Some((place, number?))
            };
            all.into_iter().map(value).collect::<Option<Vec<Held>>>()
        });
        found.unwrap_or_default()
    }

    /// The scalars of an element to which a way with these indices can lead, each with its indices and its location.
    fn scalars_of(
        &self,
        element: &ElementType,
        way: &[Option<u32>],
        at: &[(i128, i128)],
        (location, place): (u64, Vec<i128>),
        found: &mut Vec<(Vec<i128>, u64)>,
    ) {
        let structs = &self.module.structs;
        let (part, count) = match (element, way.first()) {
            (ElementType::Value(Type::Scalar(_)), None) => {
                found.push((place, location));
                return;
            }
            (ElementType::Struct(id), Some(Some(field))) => {
                let fields = structs.get(id.0 as usize).map_or(&[][..], |s| &s.fields);
                let before = fields.iter().take(*field as usize);
                let before = before.filter_map(|(_, ty)| Some(ty.extent(structs)?.location_count));
                let location = location + before.sum::<u64>();
                if let Some((_, inner)) = fields.get(*field as usize) {
                    self.scalars_of(inner, &way[1..], at, (location, place), found);
                }
                return;
            }
            (ElementType::Array(inner, count), Some(None)) => ((**inner).clone(), *count),
            (ElementType::Value(Type::Vector(scalar, count)), Some(None)) => {
                let part = ElementType::Value(Type::Scalar(*scalar));
                (part, u32::from(*count))
            }
            (ElementType::Value(_) | ElementType::Array(..) | ElementType::Struct(_), _) => return,
        };
        let each = part.extent(structs).map_or(0, |e| e.location_count);
        let Some(((low, high), rest)) = at.split_first() else {
            return;
        };
        for number in (*low).max(0)..=(*high).min(i128::from(count) - 1) {
            let mut place = place.clone();
            place.push(number);
            let location = location + number as u64 * each;
            self.scalars_of(&part, &way[1..], rest, (location, place), found);
        }
    }

    /// Says of two loads from a constant array that they are of one place if they give one number, where no two of its
    /// numbers are the same: a permutation, as which a table maps threads to places.
    fn say_distinct(
        q: &mut Query,
        held: &[Held],
        (at, loaded): (&[Linear], &Linear),
        before: &[(Vec<Linear>, Linear)],
    ) -> Option<()> {
        let ends = |number: usize| {
            let places = held.iter().map(|(place, _)| place[number]);
            Some((places.clone().min()?, places.max()?))
        };
        q.has_distinct |= !before.is_empty();
        for (other, its) in before {
            let mut same = Vec::new();
            let mut either = vec![Formula::ne(loaded, its)?];
            for (number, (a, b)) in at.iter().zip(other).enumerate() {
                let (first, last) = ends(number)?;
                same.push(Formula::eq(a, b)?);
                for at in [a, b] {
                    either.push(Formula::lt(at, &Linear::constant(first))?);
                    either.push(Formula::lt(&Linear::constant(last), at)?);
                }
            }
            either.push(Formula::all(same));
            q.say(Some(Formula::any(either)));
        }
        Some(())
    }

    /// What a value is, if constants say.
    pub(crate) fn constant_of(&self, value: Value) -> Option<i128> {
        self.run(value, &HashMap::new(), 0)
    }

    fn load(
        &self,
        q: &mut Query,
        object: (Memory, Way),
        (at, index): (Vec<Linear>, &Int),
        scalar: Scalar,
    ) -> Option<Int> {
        let mut reached = vec![(index.low, index.high)];
        for form in &at[1..] {
            reached.push(q.bounds(form)?);
        }
        let reached = self.reached(&object, reached);
        let (low, high) = reached.between.unwrap_or_else(|| range(scalar));
        let before = q.loads.entry(object.clone()).or_default().clone();
        if let Some((_, form)) = before.iter().find(|(other, _)| *other == at) {
            let form = form.clone();
            return Some(Int { form, low, high });
        }
        let (memory, way) = &object;
        let key = key(&object, &at, before.len());
        let loaded = q.symbol(&key, low, high);
        for (other, its) in &before {
            let mut either = vec![Formula::eq(its, &loaded.form)?];
            for (a, b) in at.iter().zip(other) {
                either.push(Formula::ne(a, b)?);
            }
            q.say(Some(Formula::any(either)));
        }
        let held = &reached.held;
        // First what says most of two threads.
        if reached.are_distinct {
            Self::say_distinct(q, held, (&at, &loaded.form), &before)?;
        }
        let says_which = held.len() <= MOST_HELD && !(q.only_one_to_one && reached.are_distinct);
        for (place, value) in held.iter().filter(|_| says_which) {
            let mut either = vec![Formula::eq(&loaded.form, &Linear::constant(*value))?];
            for (at, place) in at.iter().zip(place) {
                either.push(Formula::ne(at, &Linear::constant(*place))?);
            }
            q.say(Some(Formula::any(either)));
        }
        // What is required of elements is of whole ones.
        if way.is_empty() {
            let before: Vec<(Linear, Linear)> = before
                .into_iter()
                .filter_map(|(at, loaded)| Some((at.into_iter().next()?, loaded)))
                .collect();
            self.say_loaded(q, *memory, &before, (index, &loaded.form));
        }
        q.loads
            .entry(object)
            .or_default()
            .push((at, loaded.form.clone()));
        Some(loaded)
    }
}

/// The name of what is loaded from there, as one of so many loads of the object before.
fn key((memory, way): &(Memory, Way), at: &[Linear], before: usize) -> String {
    // What may be a number of the launch is looked for small.
    let is_first = at.first().and_then(Linear::as_constant) == Some(0);
    let kind = if is_first && !way.is_empty() {
        "field"
    } else {
        "contents"
    };
    let places: Option<Vec<i128>> = at.iter().map(Linear::as_constant).collect();
    let which = places.map_or(before.to_string(), |places| format!("at {places:?}"));
    format!("{kind} {memory:?} {way:?} {which}")
}
