/*
 * NIDS: scans payloads for rules; a match raises an alert, once per flow and class of rules until
 * the flow is removed. Packets that match a rule of one class can be dropped; then packets are
 * dropped, too, that could not be scanned completely, as non-initial fragments, and frames that are
 * not understood, unless `unknown` says otherwise. A match may begin in another segment of a stream
 * of TCP.
 */
#include "accelerators/flow_scan.h"
#include "core/rules.h"

enum { DROPPED_CLASS = FLOW_SCAN_PARAMETERS, STREAMS };
static const struct nf_parameter parameters[] = {
	FLOW_SCAN_DECLARE_PARAMETERS(""),
	[DROPPED_CLASS] = {"dropped_class",
			   "class of rules whose packets are dropped: 1 peer to peer, 2 remote, "
			   "3 chat, 4 mail, 5 media, 6 store, 7 web, 8 network; 0 none",
			   0, RULE_CLASSES, 0},
	[STREAMS] = {STREAM_SCAN_STREAMS},
};

enum { DROPPED = FLOW_SCAN_COUNTERS, ALERTS, FIRST_CLASS, SEGMENTS = FIRST_CLASS + RULE_CLASSES };
static const struct nf_counter counters[] = {
	FLOW_SCAN_DECLARE_COUNTERS,
	[DROPPED] = {"dropped", "packets freed because they match, or were not scanned completely"},
	[ALERTS] = {"alerts", "alerts of all classes"},
	[FIRST_CLASS + RULE_PEER_TO_PEER] = {"alerts_peer_to_peer", "alerts of peer-to-peer rules"},
	[FIRST_CLASS + RULE_REMOTE] = {"alerts_remote",
				       "alerts of rules for remote access and tunnels"},
	[FIRST_CLASS + RULE_CHAT] = {"alerts_chat", "alerts of chat rules"},
	[FIRST_CLASS + RULE_MAIL] = {"alerts_mail", "alerts of mail and news rules"},
	[FIRST_CLASS + RULE_MEDIA] = {"alerts_media",
				      "alerts of rules for telephony, video and games"},
	[FIRST_CLASS + RULE_STORE] = {"alerts_store", "alerts of rules for files and databases"},
	[FIRST_CLASS + RULE_WEB] = {"alerts_web", "alerts of web rules"},
	[FIRST_CLASS + RULE_NETWORK] = {"alerts_network", "alerts of rules for network services"},
	STREAM_SCAN_COUNTERS_FROM(SEGMENTS),
};

/* A flow's mark is the set of classes with an alert. A flow outside the table has none. */
static void alert(struct nf *nf, uint64_t *raised, enum rule_class class)
{
	if (raised && (*raised & (1u << class)))
		return;
	if (raised)
		*raised |= 1u << class;
	nf->counters[ALERTS]++;
	nf->counters[FIRST_CLASS + class]++;
}

/* Every class that a packet matches counts: else a match of another class would hide it. */
static void completed(struct nf *nf, struct offloaded *offloaded)
{
	const uint32_t classes = offloaded->job.classes;
	const unsigned int dropped = (unsigned int)nf->settings[DROPPED_CLASS];
	const bool matched = scan_matched(offloaded, &nf->counters[FLOW_SCAN_SCANS]);
	const bool missed = offloaded->job.status < 0 || scan_missed(offloaded);

	offloaded->action = OFFLOAD_SEND;
	for (enum rule_class class = 0; matched && class < RULE_CLASSES; class++)
		if (classes & (1u << class))
			alert(nf, flow_scan_mark(nf, offloaded), class);
	if (dropped > 0 && (missed || (matched && classes & (1u << (dropped - 1))))) {
		offloaded->action = OFFLOAD_DROP;
		nf->counters[DROPPED]++;
	}
}

static int create(struct nf *nf)
{
	const bool drops = nf->settings[DROPPED_CLASS] > 0;
	struct flow_scan *scan = nf->state;
	int error;

	if (!*nf->texts[FLOW_SCAN_UNKNOWN])
		nf->passes_unknown = !drops;
	error = flow_scan_create(nf, completed);
	if (error < 0)
		return error;
	scan->drops_missed = drops ? DROPPED : 0;
	return stream_scan_create(&scan->streams, &scan->offload, (uint32_t)nf->settings[STREAMS],
				  drops, &nf->counters[SEGMENTS]);
}

/* Matches that have come in part go on where they were; flows begin anew. */
static void take_over(struct nf *nf, struct nf *from)
{
	struct flow_scan *scan = nf->state, *before = from->state;

	stream_scan_take_over(&scan->streams, &before->streams);
}

NF_KIND("NIDS",
	"raises alerts about flows whose payloads match rules; can drop packets of one class",
	OFFLOADS(NF_USES(ACCELERATOR_REGEX)), .state_bytes = sizeof(struct flow_scan),
	.create = create, .process = flow_scan_process, .take_over = take_over,
	.destroy = flow_scan_destroy)

_Static_assert(SEGMENTS + STREAM_SCAN_COUNTERS <= NF_MOST_COUNTERS, "more counters than an nf has");
