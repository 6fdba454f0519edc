// SPDX-License-Identifier: GPL-2.0-or-later

//! The possible values of globals after handlers have run on several threads: handlers are atomic, so they are the
//! results of the sequences in which the handlers of each thread are in order.

use std::collections::BTreeSet;

use super::{Cell, Hit, Limits, Machine};
use crate::model::tree::*;
use crate::model::write;

/// All results, each as the sorted lines that the script logs at its end. Thread T makes hits of the handlers from
/// `T * hits` to `(T + 1) * hits`, in this order. None: the program is not suitable for this test.
pub fn results(program: &Program, limits: Limits, threads: usize, hits: usize) -> Option<BTreeSet<Vec<Vec<u8>>>> {
    let mut found = BTreeSet::new();
    for order in orders(threads, hits) {
        let mut machine = Machine::new(program, limits);
        for index in order {
            let handler = program.handlers.get(index)?;
            // As runtime-c/tests/threads has it.
            machine.hit = Hit {
                user: (index / hits) as i64,
                point: write::point(handler.when, 0, index, write::CONCURRENT_EVENT),
                function: "",
            };
            machine.run(0, handler)?;
        }
        found.insert(machine.state());
    }
    Some(found)
}

/// All sequences of handlers, by their numbers.
pub fn orders(threads: usize, hits: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![(Vec::new(), vec![0; threads])];
    for _ in 0..threads * hits {
        let longer = |(order, done): &(Vec<usize>, Vec<usize>)| -> Vec<(Vec<usize>, Vec<usize>)> {
            let open = (0..threads).filter(|thread| done[*thread] < hits);
            open.map(|thread| {
                let (mut order, mut done) = (order.clone(), done.clone());
                order.push(thread * hits + done[thread]);
                done[thread] += 1;
                (order, done)
            })
            .collect()
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    orders.into_iter().map(|(order, _)| order).collect()
}

/// Lines, sorted.
pub fn sorted_lines(text: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    lines.sort();
    lines
}

impl Machine<'_> {
    /// As the end probe of [`crate::model::write::concurrent_script`] logs it.
    fn state(&self) -> Vec<Vec<u8>> {
        let mut text = Vec::new();
        for (index, cell) in self.globals.iter().enumerate() {
            let number = index.to_string().into_bytes();
            match cell {
                Cell::Scalar(value) => self.log(&mut text, [number, b" ".to_vec(), shown(value)].concat()),
                Cell::Array(array) => {
                    for (keys, value) in array.elements() {
                        self.log(&mut text, [number.clone(), bracketed(keys), b" ".to_vec(), shown(value)].concat());
                    }
                }
                Cell::Aggregate(array) => {
                    for (keys, samples) in array.elements().iter().filter(|(_, samples)| !samples.is_empty()) {
                        self.log(&mut text, [number.clone(), bracketed(keys), summary(samples)].concat());
                    }
                }
            }
        }
        sorted_lines(&text)
    }

    fn log(&self, text: &mut Vec<u8>, line: Vec<u8>) {
        text.extend(self.cut(line));
        text.push(b'\n');
    }
}

fn shown(value: &Value) -> Vec<u8> {
    match value {
        Value::Long(number) => number.to_string().into_bytes(),
        Value::Text(text) => text.clone(),
    }
}

/// Nothing for scalars.
fn bracketed(keys: &[Value]) -> Vec<u8> {
    let keys: Vec<Vec<u8>> = keys.iter().map(shown).collect();
    if keys.is_empty() { Vec::new() } else { [b"[".to_vec(), keys.join(&b','), b"]".to_vec()].concat() }
}

fn summary(samples: &[i64]) -> Vec<u8> {
    let sum = samples.iter().fold(0i64, |sum, sample| sum.wrapping_add(*sample));
    let (least, most) = (samples.iter().min().unwrap_or(&0), samples.iter().max().unwrap_or(&0));
    format!(" {} {sum} {least} {most}", samples.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_keeps_its_order() {
        let orders = orders(2, 2);
        assert_eq!(orders.len(), 6);
        assert!(orders.contains(&vec![0, 2, 1, 3]) && !orders.iter().any(|order| order.starts_with(&[1])));
        assert_eq!(super::orders(3, 2).len(), 90);
    }
}
