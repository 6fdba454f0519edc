// SPDX-License-Identifier: GPL-2.0-or-later

//! Stacks as a tree, and the tree as a picture.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::markup::escape;

/// Frames on a page: the largest.
const MOST_FRAMES: usize = 2500;
/// Deeper frames are left out.
const MOST_DEPTH: usize = 200;
/// Narrower frames are left out: parts of the whole.
const LEAST_SHARE: f64 = 0.0008;
const ROW: usize = 18;
const WIDTH: f64 = 1200.0;

/// A frame with all its callees.
#[derive(Debug, Default)]
pub struct Node {
    /// Samples in it and its callees.
    pub count: u64,
    /// The same of the recording that is compared.
    pub before: u64,
    callees: BTreeMap<Vec<u8>, Node>,
}

impl Node {
    /// Of folded stacks; `before`: of another recording.
    pub fn of<'s>(
        stacks: impl Iterator<Item = (&'s [u8], u64)>,
        before: impl Iterator<Item = (&'s [u8], u64)>,
    ) -> Node {
        let mut root = Node::default();
        for (stack, count) in stacks {
            root.add(stack, count, |node| &mut node.count);
        }
        for (stack, count) in before {
            root.add(stack, count, |node| &mut node.before);
        }
        root
    }

    fn add(&mut self, stack: &[u8], count: u64, sum: impl Fn(&mut Node) -> &mut u64) {
        let mut node = self;
        *sum(node) = sum(node).saturating_add(count);
        for frame in stack.split(|byte| *byte == b';').take(MOST_DEPTH) {
            node = node.callees.entry(frame.to_vec()).or_default();
            *sum(node) = sum(node).saturating_add(count);
        }
    }

    fn depth(&self) -> usize {
        let is_shown = |node: &&Node| node.count > 0;
        self.callees.values().filter(is_shown).map(|node| node.depth() + 1).max().unwrap_or(0)
    }
}

/// A frame on the page.
struct Frame<'n> {
    name: &'n [u8],
    node: &'n Node,
    left: f64,
    width: f64,
    row: usize,
}

/// The picture as SVG; empty without stacks. `is_compared`: colours show differences.
pub fn svg(root: &Node, is_compared: bool) -> String {
    if root.count == 0 {
        return String::new();
    }
    let mut frames = vec![Frame { name: b"all", node: root, left: 0.0, width: WIDTH, row: 0 }];
    place(root, 0.0, WIDTH, 1, &mut frames);
    // The largest ones, in the order of their places.
    if frames.len() > MOST_FRAMES {
        let mut widths: Vec<f64> = frames.iter().map(|frame| frame.width).collect();
        widths.sort_by(|one, other| other.total_cmp(one));
        let least = widths.get(MOST_FRAMES).copied().unwrap_or(0.0);
        frames.retain(|frame| frame.width > least);
    }
    let height = (root.depth().min(MOST_DEPTH) + 1) * ROW;
    let mut svg = format!(
        "<svg id=\"flame\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" height=\"{height}\" preserveAspectRatio=\"none\" \
         role=\"group\" aria-label=\"Flame graph: Enter zooms into a frame, Escape shows all, the arrow keys go from frame to frame\">\n"
    );
    for (index, frame) in frames.iter().enumerate() {
        let name = escape(&String::from_utf8_lossy(frame.name));
        let share = frame.node.count as f64 * 100.0 / root.count as f64;
        let mut title = format!("{name}: {} ({share:.1} %)", frame.node.count);
        let mut class = format!("h{}", hue(frame.name));
        if is_compared {
            let before = frame.node.before as f64 * 100.0 / root.before.max(1) as f64;
            let _ = write!(title, ", before: {} ({before:.1} %)", frame.node.before);
            class = difference(share - before).to_string();
        }
        let top = height - (frame.row + 1) * ROW;
        let (left, width) = (frame.left, frame.width);
        let tab = if index == 0 { 0 } else { -1 };
        let _ = writeln!(
            svg,
            "<svg class=\"f {class}\" x=\"{left:.2}\" y=\"{top}\" width=\"{width:.2}\" height=\"{}\" tabindex=\"{tab}\" role=\"button\" \
             data-x=\"{left:.2}\" data-w=\"{width:.2}\" aria-label=\"{title}\"><title>{title}</title><rect width=\"100%\" height=\"100%\"/></svg>",
            ROW - 1
        );
    }
    svg.push_str("</svg>\n<div id=\"labels\" aria-hidden=\"true\">");
    // Text in an SVG that is stretched would be stretched: it lies above it.
    for frame in frames.iter().filter(|frame| frame.width > WIDTH * 0.02) {
        let name = escape(&String::from_utf8_lossy(frame.name));
        let (left, width) = (frame.left * 100.0 / WIDTH, frame.width * 100.0 / WIDTH);
        let bottom = frame.row * ROW;
        let _ = write!(svg, "<span style=\"left:{left:.3}%;width:{width:.3}%;bottom:{bottom}px\">{name}</span>");
    }
    svg.push_str("</div>\n");
    svg
}

fn place<'n>(node: &'n Node, left: f64, width: f64, row: usize, frames: &mut Vec<Frame<'n>>) {
    if row > MOST_DEPTH {
        return;
    }
    let mut at = left;
    for (name, callee) in &node.callees {
        let share = width * callee.count as f64 / node.count.max(1) as f64;
        if share >= WIDTH * LEAST_SHARE {
            frames.push(Frame { name, node: callee, left: at, width: share, row });
            place(callee, at, share, row + 1, frames);
        }
        at += share;
    }
}

/// One of eight shades, the same for the same name.
fn hue(name: &[u8]) -> u8 {
    name.iter().fold(7u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(*byte)) % 8
}

/// By percentage points.
fn difference(points: f64) -> &'static str {
    match points {
        _ if points > 5.0 => "m2",
        _ if points > 0.5 => "m1",
        _ if points < -5.0 => "l2",
        _ if points < -0.5 => "l1",
        _ => "same",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_wide_as_their_samples() {
        let stacks = [(&b"a;b;c"[..], 3), (b"a;d", 1), (b"<e>\"", 4)];
        let root = Node::of(stacks.into_iter(), std::iter::empty());
        assert_eq!((root.count, root.depth()), (8, 3));
        let svg = svg(&root, false);
        assert!(
            svg.contains("width=\"600.00\"") && svg.contains("width=\"450.00\"") && svg.contains("width=\"150.00\"")
        );
        assert!(svg.contains("c: 3 (37.5 %)") && svg.contains("&lt;e&gt;&quot;: 4 (50.0 %)"), "{svg}");
        assert!(super::svg(&Node::default(), false).is_empty());
    }

    #[test]
    fn many_and_deep_stacks_are_bounded() {
        let deep = vec![b"f;".as_slice(); 100_000].concat();
        let wide: Vec<String> = (0..20_000).map(|number| format!("a;f{number}")).collect();
        let stacks = wide.iter().map(|stack| (stack.as_bytes(), 1)).chain([(deep.as_slice(), 20_000)]);
        let text = svg(&Node::of(stacks, std::iter::empty()), true);
        assert!(text.len() < 600_000, "{}", text.len());
        assert!(text.contains("class=\"f m2\""));
    }
}
