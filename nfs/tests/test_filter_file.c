/* Filters of an ACL from a file. */
#include "core/random.h"
#include "tables/filters.h"
#include "tests/files.h"
#include "tests/refusal.h"

static const struct nf_setting of_file[] = {{"file", .text = "file"}, {"default_permit", 0}};

/* Whether a packet passes. */
static bool passes(struct rig *rig, uint8_t protocol, uint32_t source, uint16_t source_port,
		   uint32_t destination, uint16_t destination_port)
{
	const struct packet_spec packet_spec = {.source = source,
						.destination = destination,
						.source_port = source_port,
						.destination_port = destination_port,
						.protocol = protocol};

	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	return rig->out.n == 1;
}

static const uint32_t inside = RTE_IPV4(10, 1, 2, 3), outside = RTE_IPV4(100, 64, 1, 1);

/* Of the filters in a file, the first that matches decides. */
FOLDER_TEST(the_first_match_in_a_file_decides)
{
	write_file("file", "# from our network\n"
			   "\n"
			   "deny tcp 10.1.0.0/16 any 25   # no mail\n"
			   "permit\ttcp 10.0.0.0/8 1024-65535 any\r\n"
			   "permit udp any any 53\n"
			   "permit icmp 10.1.2.3 100.64.0.0/10\n"
			   "permit 50 any any\n"
			   "deny ip any 100.64.1.1\n"
			   "permit ip any any");
	rig_make(rig, "ACL", of_file, 2);
	assert_false(passes(rig, IPPROTO_TCP, inside, 2000, outside, 25));
	assert_true(passes(rig, IPPROTO_TCP, inside, 2000, outside, 26));
	assert_false(passes(rig, IPPROTO_TCP, inside, 1023, outside, 26));
	assert_true(passes(rig, IPPROTO_UDP, outside, 9, outside, 53));
	assert_false(passes(rig, IPPROTO_UDP, outside, 53, outside, 9));
	assert_true(passes(rig, IPPROTO_ICMP, inside, 0, outside, 0));
	assert_false(passes(rig, IPPROTO_ICMP, inside + 1, 0, outside, 0));
	assert_true(passes(rig, 50, inside, 0, outside, 0));
	assert_false(passes(rig, 51, inside, 0, outside, 0));
	assert_true(passes(rig, 51, inside, 0, outside + 1, 0));
	assert_int_equal(rig_count(rig, "unmatched"), 0);
}

/* A file without filters leaves all packets to the default. */
FOLDER_TEST(a_file_without_filters_matches_nothing)
{
	write_file("file", "# none\n");
	rig_make(rig, "ACL", of_file, 2);
	assert_false(passes(rig, IPPROTO_TCP, inside, 1, outside, 1));
	assert_int_equal(rig_count(rig, "unmatched"), 1);
}

/* All faults are named with file and line, then how a line is written. */
FOLDER_TEST(every_fault_has_its_line)
{
	write_file("file", "permit tcp any any\n"
			   "allow tcp any any\n"
			   "permit\n"
			   "permit tcp\n"
			   "permit tcpp any any\n"
			   "permit 256 any any\n"
			   "permit tcp 10.0.0 any\n"
			   "permit tcp 10.0.0.0/33 any\n"
			   "permit tcp 10.0.0.0/ any\n"
			   "permit tcp 10.1.0.0/8 any\n"
			   "permit tcp any\n"
			   "permit tcp any 80\n"
			   "permit icmp any any 80\n"
			   "permit tcp any any 65536\n"
			   "permit tcp any 90-80 any\n"
			   "permit tcp any any 80 log\n"
			   "permit tcp any any 1 2 3 4 5 6\n");
	assert_string_equal(
		refusal("ACL", of_file, 2),
		"file:2: allow: neither permit nor deny\n"
		"file:3: no protocol\n"
		"file:4: no source\n"
		"file:5: tcpp: not a protocol: ip, ipv4, ipv6, tcp, udp, icmp, icmp6, or 1 to 255\n"
		"file:6: 256: not a protocol: ip, ipv4, ipv6, tcp, udp, icmp, icmp6, or 1 to 255\n"
		"file:7: 10.0.0: not an IPv4 address\n"
		"file:8: 10.0.0.0/33: a prefix length is from 0 to 32\n"
		"file:9: 10.0.0.0/: a prefix length is from 0 to 32\n"
		"file:10: 10.1.0.0/8: bits beyond the prefix are set, other than in 10.0.0.0/8\n"
		"file:11: no destination\n"
		"file:12: no destination\n"
		"file:13: 80: only tcp and udp have ports\n"
		"file:14: 65536: ports are from 0 to 65535, the lower one first\n"
		"file:15: 90-80: ports are from 0 to 65535, the lower one first\n"
		"file:16: log: not expected\n"
		"file:17: more than 8 words\n"
		"hint: permit|deny PROTOCOL SOURCE [PORTS] DESTINATION [PORTS], as `permit tcp "
		"10.0.0.0/8 any 443`\n");
}

/* Of many faults the first 20 are printed; a missing file is named. */
FOLDER_TEST(many_faults_are_counted)
{
	const char *printed;
	char text[24 * 6] = "";

	assert_string_equal(refusal("ACL", of_file, 2), "ACL: file: No such file or directory\n");
	for (int i = 0; i < 23; i++)
		strcat(text, "wrong\n");
	write_file("file", text);
	printed = refusal("ACL", of_file, 2);
	assert_non_null(strstr(printed, "file:20: wrong: neither permit nor deny\n"
					"file: and 3 more\n"
					"hint: permit|deny "));
	assert_null(strstr(printed, "file:21"));
}

static void write_prefix(FILE *file, const struct prefix *prefix)
{
	const uint32_t address = prefix->address;

	fprintf(file, " %u.%u.%u.%u/%u", address >> 24, address >> 16 & 0xff, address >> 8 & 0xff,
		address & 0xff, prefix->depth);
}

static void write_filter(FILE *file, const struct filter *filter)
{
	fprintf(file, filter->permit ? "permit" : "deny");
	fprintf(file, filter->protocol ? " %u" : " ip", filter->protocol);
	write_prefix(file, &filter->source);
	if (filter->source_ports.low > 0)
		fprintf(file, " %u-%u", filter->source_ports.low, filter->source_ports.high);
	write_prefix(file, &filter->destination);
	if (filter->destination_ports.low > 0)
		fprintf(file, " %u-%u", filter->destination_ports.low,
			filter->destination_ports.high);
	fputc('\n', file);
}

static bool same(const struct filter *one, const struct filter *other)
{
	return one->source.address == other->source.address &&
	       one->source.depth == other->source.depth &&
	       one->destination.address == other->destination.address &&
	       one->destination.depth == other->destination.depth &&
	       one->source_ports.low == other->source_ports.low &&
	       one->source_ports.high == other->source_ports.high &&
	       one->destination_ports.low == other->destination_ports.low &&
	       one->destination_ports.high == other->destination_ports.high &&
	       one->protocol == other->protocol && one->permit == other->permit;
}

/* Generated filters that are written to a file are read as the same ones. */
FOLDER_TEST(what_is_written_is_read)
{
	enum { FILTERS = 2000 };
	struct filter *generated = filters_generate("test", FILTERS, 7), *read;
	FILE *file = fopen("file", "w");
	uint32_t n;

	for (int i = 0; i < FILTERS; i++)
		write_filter(file, &generated[i]);
	fclose(file);
	read = filters_read("test", "file", &n);
	assert_non_null(read);
	assert_int_equal(n, FILTERS);
	for (int i = 0; i < FILTERS; i++)
		assert_true(same(&read[i], &generated[i]));
	free(generated);
	free(read);
}

/* A line of a file whose words are often wrong, missing, or no text. */
static void write_hostile_line(FILE *file, uint64_t *random)
{
	static const char *const right[] = {"permit", "tcp", "10.0.0.0/8", "80", "any", "1-2"};
	static const char *const words[] = {"deny", "ip", "255", "any", "#", "/", "-", "0.0.0.0"};

	for (unsigned int i = 0; i < RTE_DIM(right); i++) {
		const uint32_t kind = random_below(random, 16);

		if (kind == 0)
			fputc((int)random_below(random, 256), file);
		else if (kind == 1)
			fprintf(file, " %s", words[random_below(random, RTE_DIM(words))]);
		else if (kind > 2)
			fprintf(file, " %s", right[i]);
	}
	fputc('\n', file);
}

/* A file is refused whole, or read; nothing is read beyond its end. */
FOLDER_TEST(hostile_files_are_refused_or_read)
{
	const struct caught caught = stderr_catch();
	uint64_t random = 1;
	uint32_t accepted = 0;

	for (int round = 0; round < 2000; round++) {
		FILE *file = fopen("file", "w");
		struct filter *filters;
		uint32_t n;

		for (uint32_t lines = random_below(&random, 4); lines > 0; lines--)
			write_hostile_line(file, &random);
		fclose(file);
		filters = filters_read("test", "file", &n);
		accepted += filters && n > 0;
		free(filters);
	}
	assert_non_null(strstr(stderr_release(&caught), "not an IPv4 address\n"));
	assert_in_range(accepted, 100, 1500);
}
