// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes at the network's hooks, in the initial network namespace. A handler's registers are
 * words, of which the last is the verdict, which a script in guru mode may set.
 */
#include <linux/kconfig.h>

#include "context.h"
#include "family.h"
#include "site.h"

#if IS_ENABLED(CONFIG_NETFILTER)
#include <linux/irqflags.h>
#include <linux/netfilter.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

/* Softirqs, or the sender's context with softirqs off. */
static unsigned int handle_packet(void *priv, struct sk_buff *skb,
				  const struct nf_hook_state *state)
{
	struct spile_site *site = priv;
	unsigned long words[SPILE_PACKET_WORDS] = {
		[SPILE_PACKET_SKB] = (unsigned long)skb,
		[SPILE_PACKET_IN] = (unsigned long)state->in,
		[SPILE_PACKET_OUT] = (unsigned long)state->out,
		[SPILE_PACKET_HOOK] = state->hook,
		[SPILE_PACKET_VERDICT] = NF_ACCEPT,
	};
	unsigned long flags;
	unsigned int verdict;
	bool fine;

	raw_local_irq_save(flags);
	fine = spile_context_run(site, SPILE_STATE_RUNNING, words);
	raw_local_irq_restore(flags);
	verdict = words[SPILE_PACKET_VERDICT];
	if (!fine)
		return NF_ACCEPT;
	switch (verdict & NF_VERDICT_MASK) {
	case NF_DROP:
	case NF_ACCEPT:
	case NF_STOLEN:
	case NF_QUEUE:
		return verdict;
	default:
		/* The kernel would lose the packet without freeing it. */
		return NF_ACCEPT;
	}
}

static int arm_hook(struct spile_site *site)
{
	const struct spile_netfilter *netfilter = &site->probe->netfilter;
	int error;

	site->hook = kzalloc(sizeof(*site->hook), GFP_KERNEL);
	if (!site->hook)
		return -ENOMEM;
	site->hook->hook = handle_packet;
	site->hook->priv = site;
	site->hook->pf = netfilter->family;
	site->hook->hooknum = netfilter->hook;
	site->hook->priority = netfilter->priority;
	error = nf_register_net_hook(&init_net, site->hook);
	if (error)
		kfree(site->hook);
	return error;
}

static void disarm_hooks(struct spile_site *const *sites, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		nf_unregister_net_hook(&init_net, sites[i]->hook);
	/* Packets run through the hooks under RCU. */
	synchronize_rcu();
	for (i = 0; i < count; i++)
		kfree(sites[i]->hook);
}
#else
static int arm_hook(struct spile_site *site)
{
	return -EOPNOTSUPP;
}

static void disarm_hooks(struct spile_site *const *sites, unsigned int count)
{
}
#endif

const struct spile_family spile_netfilter_family = {
	.kind = SPILE_PROBE_NETFILTER,
	.type = "netfilter",
	.arm = arm_hook,
	.disarm = disarm_hooks,
};
