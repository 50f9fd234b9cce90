//! How often a schema evaluates one value: `visits[d]` bounds the evaluations of any value that is `d`
//! levels below the root of an instance. Applying the schema costs at most the sum over all values of the
//! instance, and recursive references can double it with every level.

use serde_json::Value;

use super::Refusal;
use super::graph::{SchemaGraph, SchemaNode};
use crate::limits;
use crate::steps::count_steps;

/// The cost of applying an admitted schema.
#[derive(Clone, Debug, Default)]
pub(in crate::schema) struct Cost {
    /// Weighted evaluations per value by depth, up to the last depth that has any.
    visits: Vec<u64>,
    /// The longest chain of schemas that apply to one value.
    path: u64,
    /// Patterns that the validator matches by backtracking.
    backtracking: u64,
}

impl Cost {
    pub(super) fn of(graph: &SchemaGraph<'_>) -> Result<Self, Refusal> {
        let order = bottom_up(&graph.nodes)?;
        let mut paths = vec![0_u64; graph.nodes.len()];
        // Evaluations of a value itself, by any schema.
        let mut now = vec![0_u64; graph.nodes.len()];
        for &id in &order {
            let node = &graph.nodes[id];
            paths[id] = node.same.iter().map(|it| paths[*it] + 1).max().unwrap_or(0);
            now[id] = node.weight.saturating_add(node.sum_same(&now));
        }
        let path = paths.iter().copied().max().unwrap_or(0);
        if path > limits::SCHEMA_PATH_MAX {
            return Err(Refusal::ReferencePath);
        }
        if now.iter().any(|cost| *cost > limits::SCHEMA_COST_MAX) {
            return Err(Refusal::Cost);
        }
        let mut visits = Vec::new();
        let mut members = vec![0_u64; graph.nodes.len()];
        let mut items = vec![0_u64; graph.nodes.len()];
        while visits.len() <= limits::NESTING_MAX && now.first().is_some_and(|cost| *cost > 0) {
            visits.push(now[0]);
            let names = visits.len() == 1;
            for &id in &order {
                let node = &graph.nodes[id];
                count_steps(node.edges());
                let below = cost_below(&node.members, &node.every_member, &now);
                let names = if names {
                    node.names.iter().map(|it| now[*it]).sum()
                } else {
                    0
                };
                members[id] = node
                    .sum_same(&members)
                    .saturating_add(below)
                    .saturating_add(names);
                let below = cost_below(&node.items, &node.every_item, &now);
                items[id] = node.sum_same(&items).saturating_add(below);
            }
            for (now, (members, items)) in now.iter_mut().zip(members.iter().zip(&items)) {
                *now = *members.max(items);
            }
        }
        Ok(Self {
            visits,
            path,
            backtracking: graph.backtracking,
        })
    }

    /// Whether the schema may be applied to this value.
    pub(in crate::schema) fn allows(&self, value: &Value) -> bool {
        self.is_linear() || {
            let (steps, size) = self.steps(value, &self.visits, self.backtracking);
            steps <= limits::SCHEMA_STEPS_MAX.max(size.saturating_mul(limits::SCHEMA_STEPS_PER_VALUE_MAX))
        }
    }

    /// Whether the errors of this value may be listed. An error of an alternative contains a copy of the
    /// value, so every evaluation counts with all values below.
    pub(in crate::schema) fn allows_listing(&self, value: &Value) -> bool {
        let sum = |sum: &mut u64, visits: &u64| {
            *sum = sum.saturating_add(*visits);
            Some(*sum)
        };
        let mut above: Vec<u64> = self.visits.iter().scan(0, sum).collect();
        // Values that no schema evaluates are copied with those above them.
        above.resize(limits::NESTING_MAX + 1, above.last().copied().unwrap_or(0));
        // The pattern is matched again for its error, which takes much longer than a match that only answers.
        let backtracking = self.backtracking.saturating_mul(4);
        let (steps, _) = self.steps(value, &above, backtracking);
        steps <= limits::SCHEMA_LISTED_STEPS_MAX
    }

    /// Any value is evaluated few times, so that the cost is that of reading the instance.
    fn is_linear(&self) -> bool {
        let most = self.visits.iter().copied().max().unwrap_or(0);
        self.backtracking == 0
            && most.saturating_mul(self.depth_factor(self.visits.len() as u64))
                <= limits::SCHEMA_STEPS_PER_VALUE_MAX
    }

    /// The validator compares each open reference with those above it.
    fn depth_factor(&self, depth: u64) -> u64 {
        1 + self.path * depth / 64
    }

    /// Bounds of the evaluations, and the size of the value in the same unit.
    fn steps(&self, value: &Value, visits: &[u64], backtracking: u64) -> (u64, u64) {
        let (mut steps, mut size) = (0_u64, 0_u64);
        let mut open = vec![(value, 0_usize)];
        while let Some((value, depth)) = open.pop() {
            let weight = match value {
                Value::String(text) => 1 + text.len() as u64 / 64,
                _ => 1,
            };
            count_steps(1);
            size += weight;
            let Some(visits) = visits.get(depth) else { continue };
            let factor = self.depth_factor(depth as u64);
            steps = steps.saturating_add(visits.saturating_mul(weight).saturating_mul(factor));
            match value {
                Value::String(text) => {
                    let length = text.len() as u64 / 32;
                    steps = steps.saturating_add(backtracking.saturating_mul(length).saturating_mul(length));
                }
                Value::Array(list) => open.extend(list.iter().map(|it| (it, depth + 1))),
                Value::Object(map) => open.extend(map.values().map(|it| (it, depth + 1))),
                _ => {}
            }
        }
        (steps, size)
    }
}

impl SchemaNode {
    fn edges(&self) -> usize {
        let lists = [
            &self.same,
            &self.members,
            &self.every_member,
            &self.names,
            &self.items,
            &self.every_item,
        ];
        lists.iter().map(|list| list.len()).sum()
    }

    fn sum_same(&self, costs: &[u64]) -> u64 {
        let sum = sum(&self.same, costs);
        if self.repeats { sum.saturating_mul(3) } else { sum }
    }
}

/// The cost of one level below.
fn cost_below(one: &[usize], every: &[usize], costs: &[u64]) -> u64 {
    let most = one.iter().map(|it| costs[*it]).max().unwrap_or(0);
    most.saturating_add(sum(every, costs))
}

fn sum(ids: &[usize], costs: &[u64]) -> u64 {
    ids.iter().fold(0, |sum, id| sum.saturating_add(costs[*id]))
}

/// Every node behind those that it applies to the same value.
fn bottom_up(nodes: &[SchemaNode]) -> Result<Vec<usize>, Refusal> {
    let mut waiting = vec![0_usize; nodes.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (id, node) in nodes.iter().enumerate() {
        waiting[id] = node.same.len();
        for target in &node.same {
            users[*target].push(id);
        }
    }
    let mut order: Vec<usize> = (0..nodes.len()).filter(|id| waiting[*id] == 0).collect();
    let mut next = 0;
    while let Some(id) = order.get(next).copied() {
        for user in &users[id] {
            waiting[*user] -= 1;
            if waiting[*user] == 0 {
                order.push(*user);
            }
        }
        next += 1;
    }
    if order.len() < nodes.len() {
        return Err(Refusal::ReferenceLoop);
    }
    Ok(order)
}
