/* What a kernel's verdict does to a packet. */
#include "gpu/kernels/acl.h"
#include "gpu/kernels/ip_router.h"
#include "gpu/state/state.h"
#include "run/device.h"

/* The counter of a function by its name; the number of counters if it has none of it. */
static unsigned int counter_of(const struct nf_kind *kind, const char *name)
{
	unsigned int i = 0;

	while (i < kind->n_counters && (!name || strcmp(kind->counters[i].name, name) != 0))
		i++;
	return i;
}

static void count(struct nf *nf, const char *name)
{
	const unsigned int counter = counter_of(nf->kind, name);

	if (counter < nf->kind->n_counters)
		nf->counters[counter]++;
}

/* Whether the host has to answer or to keep flows, as the function in C does. */
static bool is_the_hosts(enum gpu_nf of, u32 verdict)
{
	verdict &= ~GPU_FREED;
	return of == GPU_NIDS ||
	       (of == GPU_IP_ROUTER &&
		(verdict == ROUTER_EXPIRED || verdict == ROUTER_UNROUTABLE));
}

/* Whether a result can be applied to a packet: devices are not trusted with buffers. */
static bool is_sound(const struct gpu_slot *result, const struct rte_mbuf *packet)
{
	return result->held <= result->length && result->held <= UINT16_MAX &&
	       (result->length <= rte_pktmbuf_pkt_len(packet) ||
		(packet->nb_segs == 1 && result->length - packet->data_len <=
						 rte_pktmbuf_tailroom(packet)));
}

/* Whether a gate is one of the function's. */
static bool is_gate(const struct nf *nf, u32 gate)
{
	return gate == NF_FORWARD || (gate >= NF_BRANCH && gate - NF_BRANCH < nf_branches(nf));
}

/* The packet as the device makes it: bytes that it wrote, then bytes that came. */
static bool rewrite(struct rte_mbuf *packet, const struct gpu_slot *result)
{
	const uint32_t length = rte_pktmbuf_pkt_len(packet);
	const u8 *bytes = gpu_frame(result);

	if (result->length > length &&
	    !rte_pktmbuf_append(packet, (uint16_t)(result->length - length)))
		return false;
	if (result->length < length &&
	    rte_pktmbuf_trim(packet, (uint16_t)(length - result->length)) < 0)
		return false;
	if (result->held > packet->data_len)
		return false;
	memcpy(rte_pktmbuf_mtod(packet, void *), bytes, result->held);
	metadata_of(packet)->data_off = metadata_of(packet)->data_len = 0;
	return true;
}

/* A packet that the device has not seen, though it fits a slot: the device was given up. */
static bool must_be_freed(enum gpu_nf of, const struct rte_mbuf *packet)
{
	/* in C its sequence number, and so the vector of its cipher, would be another one's, too */
	return of == GPU_IPSEC && rte_pktmbuf_pkt_len(packet) <= RTE_MBUF_DEFAULT_DATAROOM;
}

static void send_on(enum gpu_nf of, struct rte_mbuf *packet, const struct gpu_slot *result,
		    struct nf_out *out)
{
	if (!rewrite(packet, result)) {
		rte_pktmbuf_free(packet);
		return;
	}
	if (of == GPU_IP_ROUTER)
		metadata_of(packet)->gate = (uint8_t)result->detail;
	nf_send(out, packet);
}

void device_apply(const struct nf_kind *kind, enum gpu_nf of, struct nf *nf,
		  struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	const struct gpu_slot *result = device_result();
	struct rte_mbuf *packet = packets[0];

	if (!result && must_be_freed(of, packet)) {
		count(nf, "failed");
		rte_pktmbuf_free(packet);
		return;
	}
	if (!result || is_the_hosts(of, result->verdict) || !is_sound(result, packet) ||
	    (of == GPU_IP_ROUTER && !is_gate(nf, result->detail))) {
		kind->process(nf, packets, n, out);
		return;
	}
	count(nf, gpu_verdict_name(of, result->verdict));
	if (of == GPU_ACL && result->detail == 0 &&
	    (result->verdict & ~GPU_FREED) <= ACL_DENIED)
		count(nf, "unmatched");
	if (result->verdict & GPU_FREED)
		rte_pktmbuf_free(packet);
	else
		send_on(of, packet, result, out);
}
