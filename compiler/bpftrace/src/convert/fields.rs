// SPDX-License-Identifier: GPL-2.0-or-later

//! Fields of a tracepoint's record, which `args` has in bpftrace. Scripts have the parameters from which the kernel makes the
//! record, so a field that is not a parameter of its own is read through them (include/trace/events/).

/// What a field of a record is in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// The parameter of that name, or an error when the script is compiled.
    Parameter,
    /// An expression of parameters, and the function of [`super::HELPERS`] that it calls.
    Expression(String, Option<&'static str>),
    /// A parameter has the name of the field, but another value.
    Different,
}

/// The name of the current process, in fields for it: a string of its own.
pub const CURRENT_NAME: &str = "execname()";

/// Fields that have the name of a parameter and another value (kernel 6.1): the subsystem, the field, the tracepoints. Those
/// that [`expression`] has are not here.
#[rustfmt::skip]
const DIFFERENT: [(&str, &str, &str); 48] = [
    ("9p", "fid", "9p_fid_ref"),
    (
        "afs",
        "call",
        "afs_call_done afs_call_state afs_cb_call afs_cm_no_server afs_cm_no_server_u afs_make_fs_call \
         afs_make_fs_call1 afs_make_fs_call2 afs_make_fs_calli afs_make_vl_call afs_notify_call \
         afs_protocol_error afs_receive_data afs_send_data afs_sent_data",
    ),
    ("bpf_test_run", "err", "bpf_test_finish"),
    ("bridge", "dev", "br_fdb_add"),
    (
        "cachefiles",
        "backer",
        "cachefiles_io_error cachefiles_link cachefiles_ondemand_fd_write cachefiles_read cachefiles_tmpfile \
         cachefiles_trunc cachefiles_vfs_error cachefiles_write",
    ),
    ("cachefiles", "dir", "cachefiles_mkdir"),
    ("cachefiles", "inode", "cachefiles_mark_active cachefiles_mark_failed cachefiles_mark_inactive"),
    (
        "cachefiles",
        "obj",
        "cachefiles_coherency cachefiles_io_error cachefiles_link cachefiles_lookup cachefiles_mark_active \
         cachefiles_mark_failed cachefiles_mark_inactive cachefiles_ondemand_close cachefiles_ondemand_copen \
         cachefiles_ondemand_cread cachefiles_ondemand_fd_release cachefiles_ondemand_fd_write \
         cachefiles_ondemand_open cachefiles_ondemand_read cachefiles_read cachefiles_rename \
         cachefiles_tmpfile cachefiles_trunc cachefiles_unlink cachefiles_vfs_error cachefiles_write",
    ),
    ("cachefiles", "subdir", "cachefiles_mkdir"),
    ("cgroup", "root", "cgroup_destroy_root cgroup_remount cgroup_setup_root"),
    ("dlm", "error", "dlm_lock_end"),
    ("ext4", "dir", "ext4_allocate_inode ext4_request_inode"),
    ("ext4", "eh_entries", "ext4_ext_remove_space_done"),
    ("ext4", "keydev", "ext4_fsmap_high_key ext4_fsmap_low_key ext4_fsmap_mapping"),
    ("ext4", "parent", "ext4_unlink_enter"),
    ("ext4", "scan_time", "ext4_es_shrink"),
    (
        "f2fs",
        "dev",
        "f2fs_issue_discard f2fs_issue_flush f2fs_issue_reset_zone f2fs_queue_discard f2fs_remove_discard",
    ),
    ("f2fs", "ino", "f2fs_lookup_end"),
    ("fscache", "cookie", "fscache_acquire fscache_invalidate fscache_relinquish fscache_resize"),
    ("fsi", "data", "fsi_master_rw_result fsi_master_write"),
    ("fsi_master_ast_cf", "rdata", "fsi_master_acf_copro_response"),
    ("fsi_master_gpio", "msg", "fsi_master_gpio_in fsi_master_gpio_out"),
    (
        "iocost",
        "now",
        "iocost_inuse_adjust iocost_inuse_shortage iocost_inuse_transfer iocost_iocg_activate \
         iocost_iocg_forgive_debt iocost_iocg_idle",
    ),
    ("irq_vectors", "ret", "vector_alloc vector_alloc_managed"),
    ("irq_vectors", "vector", "vector_alloc vector_alloc_managed"),
    ("kvm", "val", "kvm_mmio"),
    ("nbd", "nbd_request", "nbd_send_request"),
    ("neigh", "dev", "neigh_create"),
    ("netfs", "rreq", "netfs_failure netfs_read netfs_rreq"),
    ("oom", "result", "compact_retry"),
    ("power", "pm_ops", "device_pm_callback_start"),
    ("qdisc", "dev", "qdisc_create"),
    ("rpcrdma", "event", "svcrdma_qp_error"),
    ("rpcrdma", "max", "xprtrdma_err_vers"),
    ("rpcrdma", "min", "xprtrdma_err_vers"),
    ("rpcrdma", "procedure", "xprtrdma_err_unrecognized"),
    ("rpcrdma", "xid", "svcrdma_err_chunk svcrdma_err_vers"),
    (
        "rxrpc",
        "call",
        "rxrpc_call_complete rxrpc_congest rxrpc_connect_call rxrpc_disconnect_call rxrpc_improper_term \
         rxrpc_propose_ack rxrpc_receive rxrpc_recvmsg rxrpc_resend rxrpc_retransmit rxrpc_rtt_rx \
         rxrpc_rtt_tx rxrpc_rx_abort rxrpc_rx_ack rxrpc_rx_eproto rxrpc_rx_rwind_change rxrpc_timer \
         rxrpc_transmit rxrpc_tx_data",
    ),
    ("rxrpc", "conn", "rxrpc_client"),
    ("rxrpc", "peer", "rxrpc_rx_icmp"),
    ("sof_intel", "substream", "sof_intel_hda_dsp_pcm"),
    ("sunrpc", "xid", "svc_xdr_sendto xprt_lookup_rqst xprt_timer"),
    ("writeback", "dirty_rate", "bdi_dirty_ratelimit"),
    ("writeback", "dirty_ratelimit", "balance_dirty_pages"),
    ("writeback", "pause", "balance_dirty_pages"),
    ("writeback", "period", "balance_dirty_pages"),
    ("writeback", "task_ratelimit", "balance_dirty_pages bdi_dirty_ratelimit"),
    ("xen", "desc", "xen_cpu_write_gdt_entry"),
];

/// What a field of the record of a tracepoint is, whose probe point is `kernel.trace("SUBSYSTEM:NAME")`.
pub fn field(point: &str, field: &str) -> Field {
    let Some((system, event)) = tracepoint(point) else { return Field::Parameter };
    if let Some((text, helper)) = expression(&format!("{system}:{event}"), field) {
        return Field::Expression(text, helper);
    }
    let is_one = |&(of, name, events): &(&str, &str, &str)| {
        name == field && matches(system, of) && events.split(' ').any(|known| matches(event, known))
    };
    // A pattern may be that of a tracepoint whose field needs an expression.
    let needs_one = |&(of, known): &(&str, &str)| {
        matches(system, of)
            && matches(event, known)
            && expression(&format!("{of}:{known}"), field).is_some_and(|(text, _)| text != format!("${field}"))
    };
    if DIFFERENT.iter().any(is_one) || event.contains('*') && CONVERTED.iter().any(needs_one) {
        return Field::Different;
    }
    Field::Parameter
}

fn tracepoint(point: &str) -> Option<(&str, &str)> {
    point.strip_prefix("kernel.trace(\"")?.strip_suffix("\")")?.split_once(':')
}

/// Whether the name is one of the pattern's; `*` is any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((first, rest)) => name
            .strip_prefix(first)
            .is_some_and(|tail| (0..=tail.len()).filter_map(|at| tail.get(at..)).any(|tail| matches(rest, tail))),
    }
}

/// Tracepoints with fields of the name of a parameter that [`expression`] converts.
const CONVERTED: [(&str, &str); 14] = [
    ("block", "block_bio_remap"),
    ("block", "block_rq_complete"),
    ("block", "block_rq_error"),
    ("block", "block_rq_remap"),
    ("neigh", "neigh_update"),
    ("qdisc", "qdisc_dequeue"),
    ("sched", "sched_process_wait"),
    ("sched", "sched_switch"),
    ("sunrpc", "rpc_stats_latency"),
    ("timer", "hrtimer_expire_entry"),
    ("timer", "itimer_expire"),
    ("vmscan", "mm_vmscan_throttled"),
    ("wbt", "wbt_lat"),
    ("wbt", "wbt_step"),
];

/// The expression for a field of the record of a tracepoint, `SUBSYSTEM:NAME`, where that is known, and the function that it
/// calls.
fn expression(name: &str, field: &str) -> Option<(String, Option<&'static str>)> {
    match (name, field) {
        ("sched:sched_switch", "prev_state") => {
            let text = "switched_state($preempt, $prev_state, $prev->exit_state)";
            return Some((text.to_string(), Some("switched_state")));
        }
        ("block:block_rq_complete" | "block:block_rq_error", "error") => {
            return Some(("block_error($error)".to_string(), Some("block_error")));
        }
        _ => {}
    }
    let text = match (name, field) {
        ("block:block_bio_remap", "dev") => {
            "($bio->bi_bdev->bd_disk->major << 20 | $bio->bi_bdev->bd_disk->first_minor)"
        }
        ("block:block_rq_remap", "dev") => "($rq->q->disk->major << 20 | $rq->q->disk->first_minor)",
        ("block:block_bio_remap" | "block:block_rq_remap", "old_dev") => "$dev",
        ("block:block_bio_remap" | "block:block_rq_remap", "old_sector") => "$from",
        // A null pointer is a wait for any child.
        ("sched:sched_process_wait" | "timer:itimer_expire", "pid") => "($pid ? $pid->numbers[0]->nr : 0)",
        ("sched:sched_process_wait", "comm") => CURRENT_NAME,
        // The process that queues the request, not one of the request's own.
        (
            "block:block_rq_issue" | "block:block_rq_insert" | "block:block_rq_merge" | "block:block_bio_queue",
            "comm",
        ) => CURRENT_NAME,
        ("timer:hrtimer_expire_entry", "now") => "$now[0]",
        ("neigh:neigh_update", "flags") => "$n->flags",
        ("vmscan:mm_vmscan_throttled", "reason") => "(1 << $reason)",
        ("wbt:wbt_lat", "lat") => "($lat / 1000)",
        ("wbt:wbt_step", "window") => "($window / 1000)",
        ("qdisc:qdisc_dequeue", "packets") => "($skb ? $packets : 0)",
        ("sunrpc:rpc_stats_latency", "backlog" | "rtt" | "execute") => {
            return Some((format!("(${field} / 1000)"), None));
        }
        _ => {
            let text = of_task_or_request(name, field).or_else(|| of_packet_or_socket(name, field).map(String::from));
            return text.map(|text| (text, None));
        }
    };
    Some((text.to_string(), None))
}

/// A field that is a member of the tracepoint's process or request.
fn of_task_or_request(name: &str, field: &str) -> Option<String> {
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
        "sched:sched_migrate_task" if field == "orig_cpu" => Some("task_cpu($p)".to_string()),
        "sched:sched_stat_runtime"
        | "sched:sched_stat_wait"
        | "sched:sched_stat_sleep"
        | "sched:sched_stat_iowait"
        | "sched:sched_stat_blocked" => of_task("tsk", field).filter(|_| field != "prio"),
        "task:task_newtask" | "signal:signal_generate" => of_task("task", field).filter(|_| field != "prio"),
        "task:task_rename" => match field {
            "pid" => Some("$task->pid".to_string()),
            "oldcomm" => Some("$task->comm".to_string()),
            "newcomm" => Some("$comm".to_string()),
            _ => None,
        },
        "sched:sched_wakeup" | "sched:sched_wakeup_new" | "sched:sched_waking" if field == "target_cpu" => {
            Some("task_cpu($p)".to_string())
        }
        "sched:sched_wakeup"
        | "sched:sched_wakeup_new"
        | "sched:sched_waking"
        | "sched:sched_process_exec"
        | "sched:sched_process_exit"
        | "sched:sched_migrate_task"
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

/// A field that is a member of the tracepoint's packet, socket, bio, work or interrupt.
fn of_packet_or_socket(name: &str, field: &str) -> Option<&'static str> {
    match (name, field) {
        ("net:net_dev_xmit", "len") => Some("$skb_len"),
        ("net:net_dev_xmit", "name") => Some("$dev->name"),
        ("net:net_dev_queue" | "net:netif_receive_skb" | "net:netif_rx", "len") => Some("$skb->len"),
        ("net:net_dev_queue" | "net:netif_receive_skb" | "net:netif_rx", "name") => Some("$skb->dev->name"),
        (
            "net:net_dev_queue"
            | "net:net_dev_xmit"
            | "net:netif_receive_skb"
            | "net:netif_rx"
            | "skb:kfree_skb"
            | "skb:consume_skb"
            | "tcp:tcp_retransmit_skb",
            "skbaddr",
        ) => Some("$skb"),
        ("skb:kfree_skb", "protocol") => Some("ntohs($skb->protocol)"),
        ("sock:inet_sock_set_state", "protocol") => Some("$sk->sk_protocol"),
        ("tcp:tcp_retransmit_skb", "state") => Some("$sk->__sk_common->skc_state"),
        ("sock:inet_sock_set_state" | "tcp:tcp_retransmit_skb" | "tcp:tcp_destroy_sock", _) => match field {
            "skaddr" => Some("$sk"),
            "family" => Some("$sk->__sk_common->skc_family"),
            "sport" => Some("ntohs(@cast($sk, \"struct inet_sock\")->inet_sport)"),
            "dport" => Some("ntohs($sk->__sk_common->skc_dport)"),
            _ => None,
        },
        ("irq:irq_handler_entry", "name") => Some("$action->name"),
        ("irq:softirq_entry" | "irq:softirq_exit" | "irq:softirq_raise", "vec") => Some("$vec_nr"),
        ("workqueue:workqueue_execute_start" | "workqueue:workqueue_queue_work", "function") => Some("$work->func"),
        ("block:block_bio_queue", "sector") => Some("$bio->bi_iter->bi_sector"),
        ("block:block_bio_queue", "nr_sector") => Some("($bio->bi_iter->bi_size / 512)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_through_parameters() {
        let text = |point: &str, name| match field(&format!("kernel.trace(\"{point}\")"), name) {
            Field::Parameter => format!("${name}"),
            Field::Expression(text, _) => text,
            Field::Different => "different".to_string(),
        };
        assert_eq!(text("sched:sched_switch", "next_comm"), "$next->comm");
        assert_eq!(text("sched:sched_process_fork", "child_pid"), "$child->pid");
        assert_eq!(text("sched:sched_wakeup", "target_cpu"), "task_cpu($p)");
        assert_eq!(text("block:block_rq_issue", "bytes"), "$rq->__data_len");
        assert_eq!(text("task:task_rename", "newcomm"), "$comm");
        assert_eq!(text("net:net_dev_queue", "len"), "$skb->len");
        assert_eq!(text("net:net_dev_xmit", "len"), "$skb_len");
        assert_eq!(text("sock:inet_sock_set_state", "dport"), "ntohs($sk->__sk_common->skc_dport)");
        assert_eq!(text("sock:inet_sock_set_state", "newstate"), "$newstate");
        assert_eq!(text("irq:softirq_raise", "vec"), "$vec_nr");
        assert_eq!(text("block:block_rq_issue", "comm"), "execname()");
        // Parameters have these names, but other values.
        assert_eq!(
            text("sched:sched_switch", "prev_state"),
            "switched_state($preempt, $prev_state, $prev->exit_state)"
        );
        assert_eq!(text("block:block_rq_complete", "error"), "block_error($error)");
        assert_eq!(text("block:block_bio_remap", "old_dev"), "$dev");
        assert_eq!(text("timer:hrtimer_expire_entry", "now"), "$now[0]");
        assert_eq!(text("sched:sched_process_wait", "pid"), "($pid ? $pid->numbers[0]->nr : 0)");
        assert_eq!(text("rxrpc:rxrpc_transmit", "call"), "different");
        assert_eq!(text("writeback:balance_dirty_pages", "pause"), "different");
        assert_eq!(text("sched:sched_sw*", "prev_state"), "different");
        assert_eq!(text("rxrpc:*", "conn"), "different");
        // These are parameters.
        assert_eq!(text("rxrpc:rxrpc_transmit", "seq"), "$seq");
        assert_eq!(text("syscalls:sys_enter_openat", "filename"), "$filename");
        assert_eq!(field("kernel.function(\"vfs_read\")", "count"), Field::Parameter);
        // The parameters of raw tracepoints are what bpftrace has too.
        assert_eq!(field("kernel.trace(\"sched_switch\")", "prev_state"), Field::Parameter);
    }
}
