// SPDX-License-Identifier: GPL-2.0-or-later

//! Fields of a tracepoint's record, which `args` has in bpftrace. Scripts have the parameters from which the kernel makes the
//! record, so a field that is not a parameter of its own is read through them (include/trace/events/).

/// The expression for a field of the record of a tracepoint (`kernel.trace("SUBSYSTEM:NAME")`), where that is known.
pub fn expression(point: &str, field: &str) -> Option<String> {
    let name = point.strip_prefix("kernel.trace(\"")?.strip_suffix("\")")?;
    let of_task = |task: &str, field: &str| match field {
        "comm" | "pid" | "prio" => Some(format!("${task}->{field}")),
        _ => None,
    };
    match name {
        "sched:sched_switch" => {
            let (task, field) = field.split_once('_')?;
            if task == "prev" || task == "next" { of_task(task, field) } else { None }
        }
        "sched:sched_process_fork" => {
            let (task, field) = field.split_once('_')?;
            if task == "parent" || task == "child" { of_task(task, field) } else { None }
        }
        "sched:sched_process_exec" if field == "filename" => Some("$bprm->filename".to_string()),
        "sched:sched_wakeup" | "sched:sched_wakeup_new" | "sched:sched_waking" if field == "target_cpu" => {
            Some("task_cpu($p)".to_string())
        }
        "sched:sched_wakeup"
        | "sched:sched_wakeup_new"
        | "sched:sched_waking"
        | "sched:sched_process_exec"
        | "sched:sched_process_exit"
        | "sched:sched_process_free" => of_task("p", field),
        "block:block_rq_complete" | "block:block_rq_error" if field == "nr_sector" => {
            Some("($nr_bytes / 512)".to_string())
        }
        "block:block_rq_issue"
        | "block:block_rq_insert"
        | "block:block_rq_merge"
        | "block:block_rq_requeue"
        | "block:block_rq_complete"
        | "block:block_rq_error" => match field {
            "sector" => Some("$rq->__sector".to_string()),
            "bytes" => Some("$rq->__data_len".to_string()),
            "nr_sector" => Some("($rq->__data_len / 512)".to_string()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_through_parameters() {
        let field = |point: &str, field| expression(&format!("kernel.trace(\"{point}\")"), field);
        assert_eq!(field("sched:sched_switch", "next_comm").as_deref(), Some("$next->comm"));
        assert_eq!(field("sched:sched_process_fork", "child_pid").as_deref(), Some("$child->pid"));
        assert_eq!(field("sched:sched_wakeup", "target_cpu").as_deref(), Some("task_cpu($p)"));
        assert_eq!(field("block:block_rq_issue", "bytes").as_deref(), Some("$rq->__data_len"));
        // These are parameters.
        assert_eq!(field("sched:sched_switch", "prev_state"), None);
        assert_eq!(field("block:block_rq_complete", "error"), None);
        assert_eq!(field("syscalls:sys_enter_openat", "filename"), None);
        assert_eq!(expression("kernel.function(\"vfs_read\")", "count"), None);
    }
}
