//! Circles in a graph of files.

use std::collections::BTreeMap;

/// One file names something that another defines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Where it is named first.
    pub(crate) line: usize,
    /// The path as it is written.
    pub(crate) path: String,
}

/// Groups of nodes that all reach one another, the largest first. A single node is not a group.
pub(crate) fn circles(
    nodes: usize,
    edges: impl Iterator<Item = (usize, usize)>,
) -> Vec<Vec<usize>> {
    let mut below: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (from, to) in edges {
        below.entry(from).or_default().push(to);
    }
    let reached: Vec<Vec<bool>> = (0..nodes).map(|node| reach(node, nodes, &below)).collect();
    let mut seen = vec![false; nodes];
    let mut found = Vec::new();
    for node in 0..nodes {
        if seen[node] {
            continue;
        }
        let circle: Vec<usize> = (node..nodes)
            .filter(|other| *other == node || reached[node][*other] && reached[*other][node])
            .collect();
        for member in &circle {
            seen[*member] = true;
        }
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

fn reach(from: usize, nodes: usize, below: &BTreeMap<usize, Vec<usize>>) -> Vec<bool> {
    let mut reached = vec![false; nodes];
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for next in below.get(&node).into_iter().flatten() {
            if !reached[*next] {
                reached[*next] = true;
                open.push(*next);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::circles;

    #[test]
    fn circles_are_found_the_largest_first() {
        let edges = [
            (0, 1),
            (1, 0),
            (1, 2),
            (2, 3),
            (3, 4),
            (4, 2),
            (5, 0),
            (6, 6),
        ];
        assert_eq!(circles(7, edges.into_iter()), [vec![2, 3, 4], vec![0, 1]]);
    }
}
