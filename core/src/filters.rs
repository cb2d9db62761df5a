//! Filters by their segments: which of many match a topic.
//!
//! Decides: what matches (WIRE.md section 7), as [`topic::matches`] does for one. Leaves to others: what a filter
//! stands for. Believes: no clock. Bounded by: what is put in. A look-up visits at most one node for each beginning of a filter that
//! matches a beginning of the topic, so filters that share nothing with the topic cost nothing.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::topic;

/// One beginning of filters, up to a segment boundary.
#[derive(Debug)]
struct Node<T> {
    /// By segment, wildcards written as they are: no segment of a topic is one.
    next: BTreeMap<String, Self>,
    /// What stands at the filter that ends here.
    value: Option<T>,
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self {
            next: BTreeMap::new(),
            value: None,
        }
    }
}

/// Values by filter.
#[derive(Debug)]
pub(crate) struct Filters<T> {
    root: Node<T>,
    len: usize,
    nodes: usize,
}

impl<T> Default for Filters<T> {
    fn default() -> Self {
        Self {
            root: Node::default(),
            len: 0,
            nodes: 0,
        }
    }
}

impl<T> Filters<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the nodes with their segments, taken to be short; what the values own apart.
    pub(crate) fn memory(&self) -> usize {
        self.nodes * (2 * size_of::<(String, Node<T>)>() + 32)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn get(&self, filter: &str) -> Option<&T> {
        filter
            .split('/')
            .try_fold(&self.root, |node, segment| node.next.get(segment))?
            .value
            .as_ref()
    }

    pub(crate) fn get_mut(&mut self, filter: &str) -> Option<&mut T> {
        let root = &mut self.root;
        let node = filter
            .split('/')
            .try_fold(root, |node, segment| node.next.get_mut(segment))?;
        node.value.as_mut()
    }

    /// The value of a filter, made when there is none.
    pub(crate) fn entry(&mut self, filter: &str) -> &mut T
    where
        T: Default,
    {
        let nodes = &mut self.nodes;
        let node = filter.split('/').fold(&mut self.root, |node, segment| {
            node.next.entry(segment.to_owned()).or_insert_with(|| {
                *nodes += 1;
                Node::default()
            })
        });
        self.len += usize::from(node.value.is_none());
        node.value.get_or_insert_default()
    }

    /// Takes a filter out, and what only it needed.
    pub(crate) fn remove(&mut self, filter: &str) -> Option<T> {
        let segments: Vec<&str> = filter.split('/').collect();
        let value = remove_below(&mut self.root, &segments, &mut self.nodes)?;
        self.len -= 1;
        Some(value)
    }

    /// The values of all filters that match `topic`, in the order of their segments, wildcards first.
    pub(crate) fn matching<'a>(&'a self, topic: &str) -> Vec<&'a T> {
        let mut found = Vec::new();
        let segments: Vec<&str> = topic.split('/').collect();
        collect(&self.root, &segments, !topic::is_system(topic), &mut found);
        found
    }

    /// Calls `change` with the values of all filters that match `topic`.
    pub(crate) fn change_matching(&mut self, topic: &str, mut change: impl FnMut(&mut T)) {
        let segments: Vec<&str> = topic.split('/').collect();
        visit(
            &mut self.root,
            &segments,
            !topic::is_system(topic),
            &mut change,
        );
    }

    /// Whether any filter matches `topic`.
    pub(crate) fn matches(&self, topic: &str) -> bool {
        !self.matching(topic).is_empty()
    }
}

/// Depth is bounded by the 16 segments of a filter.
fn remove_below<T>(node: &mut Node<T>, segments: &[&str], nodes: &mut usize) -> Option<T> {
    let Some((first, rest)) = segments.split_first() else {
        return node.value.take();
    };
    let next = node.next.get_mut(*first)?;
    let value = remove_below(next, rest, nodes)?;
    if next.value.is_none() && next.next.is_empty() {
        node.next.remove(*first);
        *nodes -= 1;
    }
    Some(value)
}

fn collect<'a, T>(node: &'a Node<T>, segments: &[&str], wild: bool, found: &mut Vec<&'a T>) {
    let Some((first, rest)) = segments.split_first() else {
        found.extend(&node.value);
        return;
    };
    if wild {
        if let Some(all) = node.next.get("**") {
            found.extend(&all.value);
        }
        if let Some(any) = node.next.get("*") {
            collect(any, rest, true, found);
        }
    }
    if let Some(next) = node.next.get(*first) {
        collect(next, rest, true, found);
    }
}

/// What [`collect`] finds, to be changed.
fn visit<T>(node: &mut Node<T>, segments: &[&str], wild: bool, change: &mut impl FnMut(&mut T)) {
    let Some((first, rest)) = segments.split_first() else {
        node.value.iter_mut().for_each(change);
        return;
    };
    if wild {
        if let Some(all) = node.next.get_mut("**") {
            all.value.iter_mut().for_each(&mut *change);
        }
        if let Some(any) = node.next.get_mut("*") {
            visit(any, rest, true, change);
        }
    }
    if let Some(next) = node.next.get_mut(*first) {
        visit(next, rest, true, change);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn segment() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["a", "b", "_s", "*"])
    }

    fn filter() -> impl Strategy<Value = String> {
        (prop::collection::vec(segment(), 1..4), any::<bool>()).prop_map(|(mut segments, rest)| {
            segments.extend(rest.then_some("**"));
            segments.join("/")
        })
    }

    fn topic() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "_s"]), 1..5)
            .prop_map(|segments| segments.join("/"))
    }

    proptest! {
        #[test]
        fn as_a_list_of_filters_matched_one_by_one(
            script in prop::collection::vec((filter(), any::<bool>()), 0..40),
            topics in prop::collection::vec(topic(), 1..10),
        ) {
            let mut tree = Filters::<String>::default();
            let mut list: Vec<String> = Vec::new();
            for (filter, insert) in script {
                if insert {
                    *tree.entry(&filter) = filter.clone();
                    if !list.contains(&filter) {
                        list.push(filter);
                    }
                } else {
                    let known = list.iter().position(|other| *other == filter);
                    prop_assert_eq!(tree.remove(&filter).is_some(), known.is_some());
                    if let Some(at) = known {
                        list.remove(at);
                    }
                }
                prop_assert_eq!(tree.len(), list.len());
            }
            for topic in &topics {
                let mut got: Vec<&String> = tree.matching(topic);
                let mut want: Vec<&String> =
                    list.iter().filter(|filter| topic::matches(filter, topic)).collect();
                got.sort();
                want.sort();
                prop_assert_eq!(&got, &want);
                let want: Vec<String> = want.into_iter().cloned().collect();
                let mut got = Vec::new();
                tree.change_matching(topic, |filter| got.push(filter.clone()));
                got.sort();
                prop_assert_eq!(got, want);
            }
            for filter in &list {
                prop_assert_eq!(tree.get(filter), Some(filter));
            }
            for filter in list {
                tree.remove(&filter);
            }
            prop_assert!(tree.is_empty() && tree.root.next.is_empty() && tree.nodes == 0, "nothing is left behind");
        }
    }
}
