#include <stdio.h>
#include <string.h>

#include <rte_hash.h>
#include <rte_jhash.h>

#include "core/memory.h"
#include "core/metadata.h"
#include "cycles/peer.h"
#include "tables/urls.h"

#define L4_AT (sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr))
#define REQUEST_AT (L4_AT + sizeof(struct rte_tcp_hdr))
#define ENTRIES 1000 /* the function's default, and its seed */
#define SEED 1
#define REQUESTS 256
#define LONGEST (2 * URLS_LONGEST)

/* The set of hashes of the list's entries. */
struct filter {
	struct rte_hash *entries;
	char requests[REQUESTS][LONGEST];
	uint32_t next;
};

static uint64_t hash_of(const char *host, size_t host_length, const char *path, size_t path_length)
{
	const uint32_t hash = rte_jhash(host, host_length, SEED);

	return (uint64_t)hash << 32 | rte_jhash(path, path_length, hash);
}

static void add_entries(struct filter *filter)
{
	uint64_t random = SEED;

	for (int i = 0; i < ENTRIES; i++) {
		char url[URLS_LONGEST];
		const char *path;
		uint64_t hash;

		urls_next(&random, url);
		path = strchrnul(url, '/');
		hash = hash_of(url, (size_t)(path - url), path, strlen(path));
		rte_hash_add_key(filter->entries, &hash);
	}
}

/* Requests for hosts that are not in the list. */
static void write_requests(struct filter *filter)
{
	uint64_t random = SEED + 1;

	for (int i = 0; i < REQUESTS; i++) {
		char url[URLS_LONGEST];
		const char *path;

		urls_next(&random, url);
		path = strchrnul(url, '/');
		snprintf(filter->requests[i], LONGEST,
			 "GET /%s HTTP/1.1\r\nUser-Agent: cycles\r\nHost: x%.*s\r\n\r\n",
			 path + (*path == '/'), (int)(path - url), url);
	}
}

static void *create(void)
{
	const struct rte_hash_parameters parameters = {.name = "plain_url_filter",
						       .entries = 2 * ENTRIES,
						       .key_len = sizeof(uint64_t),
						       .socket_id = SOCKET_ID_ANY};
	struct filter *filter = nf_zalloc(sizeof(*filter));

	if (!filter)
		return NULL;
	filter->entries = rte_hash_create(&parameters);
	if (!filter->entries) {
		nf_free(filter);
		return NULL;
	}
	add_entries(filter);
	write_requests(filter);
	return filter;
}

/* The traffic's packets as segments of TCP, each with a request. */
static uint16_t prepare(void *of, struct rte_mbuf **packets, uint16_t n)
{
	struct filter *filter = of;

	for (uint16_t i = 0; i < n; i++) {
		const char *request = filter->requests[filter->next++ % REQUESTS];
		uint8_t *bytes = rte_pktmbuf_mtod(packets[i], uint8_t *);
		struct rte_ipv4_hdr *ip =
			(struct rte_ipv4_hdr *)(bytes + sizeof(struct rte_ether_hdr));
		struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(bytes + L4_AT);

		ip->next_proto_id = IPPROTO_TCP;
		tcp->sent_seq = tcp->recv_ack = 0;
		tcp->data_off = (sizeof(*tcp) / 4) << 4;
		tcp->tcp_flags = RTE_TCP_ACK_FLAG;
		memcpy(bytes + REQUEST_AT, request, strlen(request));
		packet_changed(packets[i]);
	}
	return n;
}

static bool is_listed(const struct filter *filter, const char *bytes, size_t length)
{
	const char *target = memchr(bytes, ' ', length), *target_end, *host, *host_end;
	uint64_t keys[2];

	if (!target || memcmp(bytes, "GET", 3) != 0)
		return false;
	target++;
	target_end = memchr(target, ' ', length - (size_t)(target - bytes));
	host = memmem(bytes, length, "\nHost: ", 7);
	if (!target_end || !host)
		return false;
	host += 7;
	host_end = memchr(host, '\r', length - (size_t)(host - bytes));
	if (!host_end)
		return false;
	keys[0] = hash_of(host, (size_t)(host_end - host), "", 0);
	keys[1] = hash_of(host, (size_t)(host_end - host), target, (size_t)(target_end - target));
	return rte_hash_lookup(filter->entries, &keys[0]) >= 0 ||
	       rte_hash_lookup(filter->entries, &keys[1]) >= 0;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	for (uint16_t i = 0; i < n; i++) {
		const char *bytes = rte_pktmbuf_mtod_offset(packets[i], const char *, REQUEST_AT);

		if (is_listed(of, bytes, rte_pktmbuf_data_len(packets[i]) - REQUEST_AT))
			rte_pktmbuf_free(packets[i]);
		else
			nf_send(out, packets[i]);
	}
}

static void destroy(void *of)
{
	struct filter *filter = of;

	rte_hash_free(filter->entries);
	nf_free(filter);
}

static struct peer plain = {
	.function = "UrlFilter",
	.name = "plain loop",
	.does = "memchr for target and Host, rte_hash_lookup of the host and of the whole URL: no "
		"domains above it, no paths above it, no other spellings",
	.create = create,
	.prepare = prepare,
	.process = process,
	.destroy = destroy,
};

PEER_REGISTER(plain)
