#include "functions/nat/forwards.h"

#include <string.h>

#include "tables/table_file.h"

static const char hint[] = "PROTOCOL EXTERNAL:PORT INSIDE:PORT, as `tcp 203.0.113.1:443 10.0.0.5:8443`";

/* An address and a port; false after printing what is wrong. */
static bool read_endpoint(struct table_file *file, char *word, struct endpoint *endpoint)
{
	char *colon = strchr(word, ':');
	struct prefix prefix;
	uint32_t port;

	if (!colon || !table_number(colon + 1, 1, UINT16_MAX, &port)) {
		table_fault(file, "%s: without a port from 1 to %d", word, UINT16_MAX);
		return false;
	}
	*colon = '\0';
	if (!table_prefix(file, word, &prefix))
		return false;
	if (prefix.depth != 32 || strchr(word, '/')) {
		table_fault(file, "%s: not an address", word);
		return false;
	}
	*colon = ':';
	endpoint->address = rte_cpu_to_be_32(prefix.address);
	endpoint->port = rte_cpu_to_be_16((uint16_t)port);
	return true;
}

static void read_forward(struct table_file *file, struct sessions *sessions)
{
	const uint8_t protocol = strcmp(file->words[0], "tcp") == 0   ? IPPROTO_TCP
				 : strcmp(file->words[0], "udp") == 0 ? IPPROTO_UDP
								      : 0;
	struct endpoint outside, inside;
	rte_be32_t address;

	if (!protocol) {
		table_fault(file, "%s: neither tcp nor udp", file->words[0]);
	} else if (file->n != 3) {
		table_fault(file, "%u words, not 3", file->n);
	} else if (read_endpoint(file, file->words[1], &outside) &&
		   read_endpoint(file, file->words[2], &inside)) {
		if (!sessions_own(sessions, outside.address))
			table_fault(file, "%s: not an external address of the NAT",
				    file->words[1]);
		else if (mapping_outside(sessions, nat_protocol(protocol), outside))
			table_fault(file, "%s: forwarded already", file->words[1]);
		else if (mapping_inside(sessions, protocol, inside))
			table_fault(file, "%s: has another external endpoint already",
				    file->words[2]);
		else if (sessions_forwarded(sessions, inside.address, &address) &&
			 address != outside.address)
			table_fault(file, "%s: has forwards of another external address",
				    file->words[2]);
		else if (!sessions_forward(sessions, protocol, outside, inside))
			table_fault(file, "more forwards than there may be sessions");
	}
}

bool forwards_read(const char *path, struct sessions *sessions)
{
	struct table_file file;

	if (!table_file_open(&file, "NAT", path, hint))
		return false;
	while (table_file_next(&file))
		read_forward(&file, sessions);
	return table_file_close(&file);
}
