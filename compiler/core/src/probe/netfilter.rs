// SPDX-License-Identifier: GPL-2.0-or-later

//! `netfilter.hook("H").pf("P")`: packets passing the network's hooks, in the initial network namespace.

use std::rc::Rc;

use super::{Context, ContextError, Form, Location, Point, PointError, ProbeFamily, Resolver, Site, TypedLocation};
use crate::program::{Attachment, Label, Mechanism, Value};
use spile_debuginfo::TypeId;
use spile_debuginfo::target::Object;
use spile_source::Span;
use spile_source::diagnostic::suggest;

/// The family of `netfilter.hook`.
pub(super) static FAMILY: ProbeFamily = ProbeFamily::new(
    &[
        Form {
            spelling: "netfilter.hook(string).pf(string)",
            doc: "packets at a hook of a protocol family: $skb, $in, $out, $hooknum, $verdict",
        },
        Form { spelling: "netfilter.pf(string).hook(string)", doc: "the same" },
        Form {
            spelling: "netfilter.hook(string).pf(string).priority(string)",
            doc: "the same, with a priority among the other functions at the hook",
        },
        Form { spelling: "netfilter.pf(string).hook(string).priority(string)", doc: "the same" },
    ],
    resolve,
);

/// Packets at a hook of a protocol family (include/uapi/linux/netfilter.h), in the initial network namespace.
static MECHANISM: Mechanism = Mechanism::new("SPILE_PROBE_NETFILTER", Label::Word("netfilter"));

/// include/uapi/linux/netfilter.h; the numbers are the kernel's ABI.
const FAMILIES: [(&str, i64); 11] = [
    ("NFPROTO_INET", 1),
    ("AF_BRIDGE", 7),
    ("NFPROTO_IPV4", 2),
    ("PF_INET", 2),
    ("NFPROTO_ARP", 3),
    ("NFPROTO_BRIDGE", 7),
    ("PF_BRIDGE", 7),
    ("NFPROTO_IPV6", 10),
    ("PF_INET6", 10),
    ("AF_INET", 2),
    ("AF_INET6", 10),
];

/// include/uapi/linux/netfilter.h, netfilter_arp.h, netfilter_bridge.h.
const HOOKS: [(&str, i64); 5] =
    [("PRE_ROUTING", 0), ("LOCAL_IN", 1), ("FORWARD", 2), ("LOCAL_OUT", 3), ("POST_ROUTING", 4)];
const ARP_HOOKS: [(&str, i64); 3] = [("NF_ARP_IN", 0), ("NF_ARP_OUT", 1), ("NF_ARP_FORWARD", 2)];

/// include/uapi/linux/netfilter_ipv4.h (those of netfilter_ipv6.h are the same), netfilter_bridge.h.
const PRIORITIES: [(&str, i64); 15] = [
    ("FIRST", i32::MIN as i64),
    ("RAW_BEFORE_DEFRAG", -450),
    ("CONNTRACK_DEFRAG", -400),
    ("RAW", -300),
    ("SELINUX_FIRST", -225),
    ("CONNTRACK", -200),
    ("MANGLE", -150),
    ("NAT_DST", -100),
    ("FILTER", 0),
    ("SECURITY", 50),
    ("NAT_SRC", 100),
    ("SELINUX_LAST", 225),
    ("CONNTRACK_HELPER", 300),
    ("CONNTRACK_CONFIRM", i32::MAX as i64),
    ("LAST", i32::MAX as i64),
];
const BRIDGE_PRIORITIES: [(&str, i64); 8] = [
    ("NF_BR_PRI_FIRST", i32::MIN as i64),
    ("NF_BR_PRI_NAT_DST_BRIDGED", -300),
    ("NF_BR_PRI_FILTER_BRIDGED", -200),
    ("NF_BR_PRI_BRNF", 0),
    ("NF_BR_PRI_NAT_DST_OTHER", 100),
    ("NF_BR_PRI_FILTER_OTHER", 200),
    ("NF_BR_PRI_NAT_SRC", 300),
    ("NF_BR_PRI_LAST", i32::MAX as i64),
];

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let named =
        |component: &str, what: &str, low: i64, high: i64, names: Vec<(String, i64)>| -> Result<i64, PointError> {
            let Some((text, span)) = point.string(component) else { return Ok(0) };
            number(&text, what, low..=high, &names, span)
        };
    let family = named("pf", "protocol family", 0, 12, owned(&FAMILIES, ""))?;
    let hooks = match family {
        3 => owned(&ARP_HOOKS, ""),
        // Those of a bridge have the numbers of the others.
        7 => [owned(&HOOKS, "NF_BR_"), owned(&HOOKS, "NF_INET_"), vec![("NF_BR_BROUTING".to_string(), 5)]].concat(),
        _ => [owned(&HOOKS, "NF_INET_"), owned(&HOOKS, "NF_IP_"), owned(&HOOKS, "NF_IP6_")].concat(),
    };
    let hook = named("hook", "hook of that family", 0, 7, hooks)?;
    let priorities = match family {
        7 => owned(&BRIDGE_PRIORITIES, ""),
        _ => [owned(&PRIORITIES, "NF_IP_PRI_"), owned(&PRIORITIES, "NF_IP6_PRI_")].concat(),
    };
    let priority = named("priority", "priority", i32::MIN.into(), i32::MAX.into(), priorities)?;
    let component = point.span();
    let kernel =
        resolver.kernel()?.vmlinux().map_err(|error| PointError::Target { component, error: Rc::new(error) })?;
    let failed = |message: String| PointError::DebugInfo { component, message };
    let guru = resolver.is_guru();
    let context = PacketContext::find(kernel, guru).map_err(|error| failed(error.to_string()))?;
    let context =
        context.ok_or_else(|| failed("the kernel has no types struct sk_buff and struct nf_hook_state".into()))?;
    Ok(vec![Site {
        point: point.spelling(),
        function: String::new(),
        module: "kernel".into(),
        attachment: Attachment::new(&MECHANISM).with(
            "netfilter",
            Value::List(vec![Value::Number(family as u32), Value::Number(hook as u32), Value::Signed(priority)]),
        ),
        context: Rc::new(context),
    }])
}

fn owned(names: &[(&str, i64)], prefix: &str) -> Vec<(String, i64)> {
    names.iter().map(|(name, value)| (format!("{prefix}{name}"), *value)).collect()
}

/// A name or number of the ABI; also a name plus or minus a number, `NF_IP_PRI_FIRST + 1`.
fn number(
    text: &str,
    what: &str,
    range: std::ops::RangeInclusive<i64>,
    names: &[(String, i64)],
    span: Span,
) -> Result<i64, PointError> {
    if let Some((_, value)) = names.iter().find(|(name, _)| name == text) {
        return Ok(*value);
    }
    let known = |word: &str| names.iter().find(|(name, _)| name == word.trim()).map(|(_, value)| *value);
    let plain = |word: &str| match word.trim().strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => word.trim().parse().ok(),
    };
    let sum = text.rfind(['+', '-']).and_then(|at| {
        let (name, number) = (known(&text[..at])?, plain(&text[at + 1..])?);
        if text[at..].starts_with('+') { name.checked_add(number) } else { name.checked_sub(number) }
    });
    match plain(text).or(sum) {
        Some(value) if range.contains(&value) => Ok(value),
        _ => {
            let near = suggest::suggest(text, names.iter().map(|(name, _)| name.as_str()));
            let names: Vec<&str> =
                if near.is_empty() { names.iter().map(|(name, _)| name.as_str()).collect() } else { near };
            Err(PointError::Argument {
                component: span,
                expected: format!("a number or name of a {what}: {}", names.join(", ")),
            })
        }
    }
}

/// The registers of a handler: one word each, in this order (runtime-c/netfilter.c).
const WORDS: [&str; 5] = ["skb", "in", "out", "hooknum", "verdict"];

struct PacketContext {
    kernel: Rc<Object>,
    types: [TypeId; WORDS.len()],
    /// The verdict can be read and written.
    guru: bool,
}

impl PacketContext {
    /// None: the kernel does not have the types.
    fn find(kernel: Rc<Object>, guru: bool) -> Result<Option<PacketContext>, spile_debuginfo::Error> {
        let debug = kernel.debug()?;
        let (skb, state) = (debug.find_type("struct sk_buff")?, debug.find_type("struct nf_hook_state")?);
        let (Some(skb), Some(state), Some(number)) = (skb, state, debug.find_type("unsigned int")?) else {
            return Ok(None);
        };
        // Pointer types, as members have them.
        let member = |id, name| debug.member(id, name).ok().map(|found| found.type_id);
        let (Some(skb), Some(input), Some(output)) = (member(skb, "next"), member(state, "in"), member(state, "out"))
        else {
            return Ok(None);
        };
        let types = [skb, input, output, number, number];
        Ok(Some(PacketContext { kernel, types, guru }))
    }
}

impl Context for PacketContext {
    fn variable(&self, name: &str) -> Result<TypedLocation, ContextError> {
        let index = WORDS.iter().position(|word| *word == name).ok_or(ContextError::Unknown)?;
        if name == "verdict" && !self.guru {
            return Err(ContextError::NoValue(vec!["the verdict of netfilter requires guru mode (-g)".into()]));
        }
        let location = Location::Register { offset: index as u32 * 8 };
        let type_id = self.types.get(index).copied().ok_or(ContextError::Unknown)?;
        Ok(TypedLocation { object: self.kernel.clone(), type_id, location })
    }

    fn parameters(&self) -> Vec<String> {
        WORDS.map(str::to_string).to_vec()
    }

    fn has_variables(&self) -> bool {
        true
    }

    fn object(&self) -> Option<Rc<Object>> {
        Some(self.kernel.clone())
    }

    fn place(&self) -> String {
        "a netfilter hook".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let span = Span::none();
        let hooks = owned(&HOOKS, "NF_INET_");
        assert_eq!(number("NF_INET_LOCAL_OUT", "hook", 0..=7, &hooks, span).unwrap(), 3);
        assert_eq!(number("4", "hook", 0..=7, &hooks, span).unwrap(), 4);
        let Err(PointError::Argument { expected, .. }) = number("NF_INET_LOCALOUT", "hook", 0..=7, &hooks, span) else {
            panic!()
        };
        assert!(expected.contains("NF_INET_LOCAL_OUT"), "{expected}");
        assert!(number("8", "hook", 0..=7, &hooks, span).is_err());
        let priorities = owned(&PRIORITIES, "NF_IP_PRI_");
        let priority = |text| number(text, "priority", i32::MIN.into()..=i32::MAX.into(), &priorities, span);
        for (text, expected) in [
            ("NF_IP_PRI_RAW", -300),
            ("NF_IP_PRI_FILTER - 5", -5),
            ("NF_IP_PRI_FIRST+1", i64::from(i32::MIN) + 1),
            ("-5", -5),
            ("0x10", 16),
        ] {
            assert_eq!(priority(text).unwrap(), expected, "{text}");
        }
        for text in ["NF_IP_PRI_LAST+1", "NF_IP_PRI_FIRST + x", "5 + 5", "+"] {
            assert!(priority(text).is_err(), "{text}");
        }
    }
}
