#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "tables/filters.h"

static const char hint[] = "permit|deny PROTOCOL SOURCE [PORTS] DESTINATION [PORTS], as "
			   "`permit tcp 10.0.0.0/8 any 443`";

static bool read_action(struct table_file *file, const char *word, struct filter *filter)
{
	filter->permit = strcmp(word, "permit") == 0;
	if (filter->permit || strcmp(word, "deny") == 0)
		return true;
	table_fault(file, "%s: neither permit nor deny", word);
	return false;
}

static bool read_protocol(struct table_file *file, const char *word, struct filter *filter)
{
	static const struct {
		const char *name;
		uint8_t number;
		enum filter_family family;
	} names[] = {{"ip", 0, FILTER_BOTH},
		     {"ipv4", 0, FILTER_IPV4},
		     {"ipv6", 0, FILTER_IPV6},
		     {"tcp", IPPROTO_TCP, FILTER_BOTH},
		     {"udp", IPPROTO_UDP, FILTER_BOTH},
		     {"icmp", IPPROTO_ICMP, FILTER_IPV4},
		     {"icmp6", IPPROTO_ICMPV6, FILTER_IPV6}};
	uint32_t number;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(word, names[i].name) == 0) {
			filter->protocol = names[i].number;
			filter->family = names[i].family;
			return true;
		}
	if (!table_number(word, 1, 255, &number)) {
		table_fault(file,
			    "%s: not a protocol: ip, ipv4, ipv6, tcp, udp, icmp, icmp6, or 1 to 255",
			    word);
		return false;
	}
	filter->protocol = (uint8_t)number;
	return true;
}

/* A port, or two with a hyphen between them. */
static bool parse_ports(char *word, struct port_range *ports)
{
	char *hyphen = strchr(word, '-');
	uint32_t low, high;
	bool good;

	if (hyphen)
		*hyphen = '\0';
	good = table_number(word, 0, UINT16_MAX, &low) &&
	       table_number(hyphen ? hyphen + 1 : word, low, UINT16_MAX, &high);
	if (hyphen)
		*hyphen = '-';
	if (good)
		*ports = (struct port_range){(uint16_t)low, (uint16_t)high};
	return good;
}

static bool are_ports(const char *word)
{
	return strspn(word, "0123456789-") == strlen(word);
}

/* A prefix, which makes the filter one of its family. */
static bool read_prefix(struct table_file *file, const char *word, struct filter *filter,
			struct prefix *prefix, struct prefix_ipv6 *prefix_ipv6)
{
	const bool ipv6 = strchr(word, ':') != NULL;
	const enum filter_family family = ipv6 ? FILTER_IPV6 : FILTER_IPV4;

	if (!(ipv6 ? table_prefix_ipv6(file, word, prefix_ipv6) : table_prefix(file, word, prefix)))
		return false;
	if (strcmp(word, "any") == 0)
		return true;
	if (filter->family != FILTER_BOTH && filter->family != family) {
		table_fault(file, "%s: the filter is of IPv%d", word, ipv6 ? 4 : 6);
		return false;
	}
	filter->family = family;
	return true;
}

/* The words at `*at`: a prefix and perhaps ports. */
static bool read_end(struct table_file *file, unsigned int *at, struct filter *filter,
		     bool is_source)
{
	struct port_range *ports = is_source ? &filter->source_ports : &filter->destination_ports;
	const bool has_ports = filter->protocol == IPPROTO_TCP || filter->protocol == IPPROTO_UDP;

	*ports = (struct port_range){0, UINT16_MAX};
	if (*at >= file->n) {
		table_fault(file, "no destination");
		return false;
	}
	if (!read_prefix(file, file->words[(*at)++], filter,
			 is_source ? &filter->source : &filter->destination,
			 is_source ? &filter->source_ipv6 : &filter->destination_ipv6))
		return false;
	if (*at >= file->n || !are_ports(file->words[*at]))
		return true;
	if (!has_ports) {
		table_fault(file, "%s: only tcp and udp have ports", file->words[*at]);
		return false;
	}
	if (!parse_ports(file->words[(*at)++], ports)) {
		table_fault(file, "%s: ports are from 0 to 65535, the lower one first",
			    file->words[*at - 1]);
		return false;
	}
	return true;
}

/* The filter of a line; false after printing what is wrong with it. */
static bool read_filter(struct table_file *file, struct filter *filter)
{
	unsigned int at = 2;

	*filter = (struct filter){0};
	if (!read_action(file, file->words[0], filter))
		return false;
	if (file->n < 3) {
		table_fault(file, "no %s", file->n < 2 ? "protocol" : "source");
		return false;
	}
	if (!read_protocol(file, file->words[1], filter) ||
	    !read_end(file, &at, filter, true) || !read_end(file, &at, filter, false))
		return false;
	if (at < file->n)
		table_fault(file, "%s: not expected", file->words[at]);
	return at == file->n;
}

/* Room for one more filter; NULL without memory, with the others freed. */
static struct filter *grow(struct filter *filters, uint32_t n, uint32_t *room)
{
	struct filter *more;

	if (n < *room)
		return filters;
	*room = 2 * *room + 64;
	more = realloc(filters, *room * sizeof(*filters));
	if (!more)
		free(filters);
	return more;
}

struct filter *filters_read(const char *of, const char *path, uint32_t *n)
{
	struct filter *filters = NULL;
	struct table_file file;
	uint32_t room = 0;

	*n = 0;
	if (!table_file_open(&file, of, path, hint))
		return NULL;
	filters = grow(NULL, 0, &room);
	while (filters && table_file_next(&file)) {
		if (*n == FILTERS_MOST) {
			table_fault(&file, "more than %d filters", FILTERS_MOST);
			break;
		}
		*n += read_filter(&file, &filters[*n]);
		filters = grow(filters, *n, &room);
	}
	if (!filters)
		fprintf(stderr, "%s: no memory for the filters of %s\n", of, path);
	if (table_file_close(&file))
		return filters;
	free(filters);
	return NULL;
}
