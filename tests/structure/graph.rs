//! A dependency graph, and a search for cycles in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Dependencies between names, each with the files that cause it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Graph {
    pub(crate) fn add(&mut self, from: &str, to: &str, file: &str) {
        let targets = self.0.entry(from.to_owned()).or_default();
        targets.entry(to.to_owned()).or_default().insert(file.to_owned());
    }

    pub(crate) fn has(&self, from: &str, to: &str) -> bool {
        self.files(from, to).next().is_some()
    }

    /// Removes one dependency.
    pub(crate) fn without(mut self, from: &str, to: &str) -> Self {
        if let Some(targets) = self.0.get_mut(from) {
            targets.remove(to);
        }
        self
    }

    /// A shortest cycle: the names along it, ending with the first one again.
    pub(crate) fn cycle(&self) -> Option<Vec<String>> {
        let cycles = self.0.keys().filter_map(|start| self.shortest_path(start, start));
        cycles.min_by_key(Vec::len)
    }

    fn shortest_path(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut reached: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(name) = queue.pop_front() {
            for next in self.0.get(name).into_iter().flat_map(BTreeMap::keys) {
                if next == to {
                    let mut path = vec![to.to_owned()];
                    let mut at = name;
                    while at != from {
                        path.push(at.to_owned());
                        at = reached[at];
                    }
                    path.push(from.to_owned());
                    path.reverse();
                    return Some(path);
                }
                if next != from && !reached.contains_key(next.as_str()) {
                    reached.insert(next, name);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// One line for each step of a cycle, with the files that cause it.
    pub(crate) fn describe(&self, cycle: &[String]) -> String {
        let steps = cycle.windows(2).map(|pair| {
            let files: Vec<&str> = self.files(&pair[0], &pair[1]).collect();
            format!("  {} -> {}  ({})", pair[0], pair[1], files.join(", "))
        });
        steps.collect::<Vec<_>>().join("\n")
    }

    fn files<'a>(&'a self, from: &str, to: &str) -> impl Iterator<Item = &'a str> {
        let files = self.0.get(from).and_then(|targets| targets.get(to));
        files.into_iter().flatten().map(String::as_str)
    }
}

#[test]
fn the_shortest_cycle_is_found_until_one_of_its_dependencies_is_removed() {
    let mut graph = Graph::default();
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "c")] {
        graph.add(from, to, "file.rs");
    }
    assert_eq!(graph.cycle().unwrap(), ["c", "d", "c"]);
    let graph = graph.without("d", "c");
    assert_eq!(graph.cycle().unwrap(), ["a", "b", "c", "a"]);
    assert!(graph.describe(&graph.cycle().unwrap()).starts_with("  a -> b  (file.rs)\n"));
    assert_eq!(graph.without("c", "a").cycle(), None);
}
