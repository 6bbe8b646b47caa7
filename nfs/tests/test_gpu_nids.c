#include <string.h>

#include "accelerators/accelerator.h"
#include "core/random.h"
#include "core/rules.h"
#include "gpu/kernels/nids.h"
#include "gpu/state/nids/patterns.h"
#include "tests/files.h"
#include "tests/gpu_rig.h"
#include "tests/offloading.h"

#define LONGEST 1400
#define LONGEST_RULE 200
#define RULES 20

/* The engine in C with the same rules, and its queue. */
static struct accelerator *engine;
static struct accelerator_queue *queue;

static void open_engine(struct accelerator *opened)
{
	engine = opened;
	assert_non_null(engine);
	queue = accelerator_attach(engine, 1);
	assert_non_null(queue);
}

static void close_engine(void)
{
	accelerator_detach(queue);
	accelerator_destroy(engine);
}

/* The lowest rule, the number of rules and their classes are those of the engine in C. */
static void compare_matches(struct gpu_rig *gpu, struct rte_mbuf *packet,
			    const struct gpu_slot *head)
{
	const struct packet headers = packet_parse(packet);
	struct accelerator_job job = {.produced = 0};
	uint8_t *payload = NULL;

	(void)gpu;
	if (headers.type != PACKET_IPV4)
		return;
	job.length = packet_payload(packet, &headers, &payload);
	job.input = payload;
	if (job.length == 0)
		return;
	queue_run(queue, &job);
	assert_int_equal(job.status, 0);
	assert_int_equal(NIDS_MATCHES(head->detail), job.produced);
	assert_int_equal(NIDS_CLASSES(head->detail), job.classes);
	if (job.produced > 0)
		assert_int_equal(NIDS_RULE(head->detail), job.rule);
}

/* Bytes of a rule's witness, sometimes with one changed, left out or repeated. */
static uint16_t put_witness(uint8_t *to, uint16_t room, uint64_t *random)
{
	unsigned int n;
	const struct rule *known = rules(&n);
	const char *witness = known[random_below(random, n)].witness;
	uint16_t length = (uint16_t)RTE_MIN(strlen(witness), (size_t)room);
	const uint16_t at = length ? random_below(random, length) : 0;

	memcpy(to, witness, length);
	switch (length > 0 ? random_below(random, 8) : 0) {
	case 1:
		to[at] ^= 1u << random_below(random, 8);
		break;
	case 2:
		memmove(to + at, to + at + 1, (size_t)(--length - at));
		break;
	case 3:
		if (length < room) {
			memmove(to + at + 1, to + at, (size_t)(length++ - at));
		}
		break;
	default:
		break;
	}
	return length;
}

/* A payload of noise, text and witnesses, at its beginning and end, too. */
static uint16_t a_payload(uint8_t payload[LONGEST], uint64_t *random)
{
	static const char letters[] = "GET POST\r\n 0123456789 HTTP/1.1 \xff\x16\x03\x01 [a]*|";
	uint16_t length = 0;

	for (uint32_t parts = random_below(random, 6); parts > 0; parts--) {
		uint16_t n = random_below(random, random_below(random, 4) ? 20 : 300);

		length += put_witness(payload + length, LONGEST - length, random);
		for (n = RTE_MIN(n, (uint16_t)(LONGEST - length)); n > 0; n--)
			payload[length++] = random_below(random, 2)
						    ? (uint8_t)random_next(random)
						    : (uint8_t)letters[random_below(
							      random, sizeof(letters) - 1)];
	}
	return length;
}

static void offer_payloads(struct gpu_rig *gpu, int n)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP};
	uint8_t payload[LONGEST];
	uint64_t random = 3;

	for (int i = 0; i < n; i++) {
		struct packet_spec packet_spec = {
			.protocol = protocols[i % 3],
			.vlan = i % 7 == 0 ? 3 : 0,
			.fragment = i % 50 == 0 ? 1 : 0,
			.payload = payload,
			.payload_length = a_payload(payload, &random),
		};

		gpu_rig_add(gpu, packet_from_spec(gpu->rig, &packet_spec));
	}
	gpu_rig_run(gpu);
}

/* Payloads with rules and nearly rules match the same rules as in C; packets of a class are freed.
 */
TEST_WITH(matches_the_rules_of_the_engine_in_c, struct rig *rig, setup_to_completion, teardown)
{
	for (int class = 0; class <= RULE_CLASSES; class += 3) {
		/* kernels scan each packet by itself */
		struct gpu_rig *gpu = gpu_rig_make(
			rig, "NIDS", SETTINGS({"dropped_class", class}, {"streams", 0}));

		open_engine(accelerator_create(ACCELERATOR_REGEX));
		gpu->check = compare_matches;
		offer_payloads(gpu, (int)gpu_rig_count(4500) / 3);
		assert_true(rig_count(rig, "matches") > 1000);
		assert_true(class == 0 || rig_count(rig, "dropped") > 50);
		close_engine();
	}
}

/* Each rule matches its witness, alone. */
TEST_WITH(each_rule_matches_its_witness, struct rig *rig, setup_to_completion, teardown)
{
	struct gpu_rig *gpu = gpu_rig_make(rig, "NIDS", NULL, 0);
	unsigned int n;
	const struct rule *known = rules(&n);

	open_engine(accelerator_create(ACCELERATOR_REGEX));
	gpu->check = compare_matches;
	for (unsigned int i = 0; i < n; i++)
		gpu_rig_add(gpu, packet_with(rig, 1, known[i].witness));
	gpu_rig_run(gpu);
	assert_int_equal(rig_count(rig, "matches"), n);
	close_engine();
}

/* Hostile packets have the same verdicts everywhere. */
TEST_WITH(hostile_packets_have_the_same_verdicts, struct rig *rig, setup_to_completion, teardown)
{
	struct gpu_rig *gpu = gpu_rig_make(rig, "NIDS", NULL, 0);

	open_engine(accelerator_create(ACCELERATOR_REGEX));
	gpu->check = compare_matches;
	gpu_rig_offer_hostile(gpu, NULL, 0, 3000);
	assert_true(rig_count(rig, "malformed") > 100);
	close_engine();
}

/* A text under construction; what does not fit is left out. */
struct text {
	size_t n;
	char bytes[LONGEST_RULE];
};

static void put(struct text *text, const char *more)
{
	if (text->n + strlen(more) < LONGEST_RULE) {
		strcpy(text->bytes + text->n, more);
		text->n += strlen(more);
	}
}

/* A random expression of few letters, so that random payloads match it now and then. */
static void put_expression(struct text *text, uint64_t *random, int depth)
{
	static const char *const atoms[] = {"a", "b",     "c",   "ab",       "abc", "[ab]", "[^a]",
					    ".", "\\x61", "\\d", "[b-c\\n]", "ca",  "bb",   "\\n"};
	static const char *const repeats[] = {"",  "",    "",      "",      "?",    "*",
					      "+", "{2}", "{1,3}", "{0,2}", "{2,}", "??"};
	static const char *const of_groups[] = {"", "", "?", "{2}", "{1,2}", "{0,2}"};

	for (uint32_t n = 1 + random_below(random, 4); n > 0; n--) {
		if (depth < 2 && random_below(random, 4) == 0) {
			put(text, random_below(random, 2) ? "(" : "(?:");
			put_expression(text, random, depth + 1);
			put(text, "|");
			put_expression(text, random, depth + 1);
			put(text, ")");
			put(text, of_groups[random_below(random, RTE_DIM(of_groups))]);
		} else {
			put(text, atoms[random_below(random, RTE_DIM(atoms))]);
			put(text, repeats[random_below(random, RTE_DIM(repeats))]);
		}
	}
}

/* A line of a rule file that both engines take. */
static void a_rule(struct text *line, uint64_t *random)
{
	char *why;

	do {
		*line = (struct text){.n = 0};
		put(line, random_below(random, 5) ? "" : "(?i)");
		put_expression(line, random, 0);
		why = line->n > LONGEST_RULE - 20 ? strdup("cut") : patterns_fault(line->bytes);
		free(why);
	} while (why);
}

static void write_rules(uint64_t *random)
{
	static const char *const classes[] = {"web", "mail", "chat", "network"};
	FILE *file = fopen("file", "w");

	assert_non_null(file);
	for (int i = 0; i < RULES; i++) {
		struct text line;

		a_rule(&line, random);
		assert_true(fprintf(file, "%s %s\n", classes[i % 4], line.bytes) > 0);
	}
	assert_int_equal(fclose(file), 0);
}

static void offer_letters(struct gpu_rig *gpu, uint64_t *random, int n)
{
	static const char letters[] = "aaabbbcccABC7\n";
	uint8_t payload[40];

	for (int i = 0; i < n; i++) {
		struct packet_spec packet_spec = {
			.payload = payload,
			.payload_length = 1 + random_below(random, sizeof(payload)),
		};

		for (uint16_t k = 0; k < packet_spec.payload_length; k++)
			payload[k] = (uint8_t)letters[random_below(random, sizeof(letters) - 1)];
		gpu_rig_add(gpu, packet_from_spec(gpu->rig, &packet_spec));
	}
	gpu_rig_run(gpu);
}

/* Random expressions match random texts on the device where they do in the engine in C. */
TEST_WITH(random_expressions_match_as_in_c, struct rig *rig, setup_engines_in_folder,
	  teardown_folder)
{
	uint64_t random = 11;

	for (unsigned int i = 0; i < gpu_rig_count(3 * 256) / 256; i++) {
		struct gpu_state tables;
		struct gpu_rig *gpu;

		do { /* a few files have more patterns than the device takes, though each rule has not */
			write_rules(&random);
			RIG_MAKE(rig, "NIDS", {"file", .text = "file"});
		} while (!gpu_state_build(rig->nf, &tables));
		gpu_state_free(&tables);
		gpu = gpu_rig_make(rig, "NIDS", SETTINGS({"file", .text = "file"}));
		open_engine(accelerator_create_rules("NIDS", "file"));
		gpu->check = compare_matches;
		offer_letters(gpu, &random, 256);
		assert_true(rig_count(rig, "matches") > 50);
		close_engine();
	}
}

/* What the automaton does not have is refused, with the reason. */
TEST(what_the_automaton_lacks_is_refused)
{
	static const char *const refused[] = {"^a",        "a$",
					      "(a",        "a)",
					      "[a",        "a**",
					      "a{2}{3}",   "a*+",
					      "(ab)*",     "(?=a)",
					      "(?P<n>a)",  "\\1",
					      "\\bword",   "[[:alpha:]]",
					      "a?",        "a*|b",
					      "",          "a{3,2}",
					      "*a",        "\\",
					      "[c-a]",     "(a|b|c|d|e|f|g|h){5}",
					      ".{1,1001}", "a{300}",
					      "\\Qa\\E",   "\\pL"};

	for (unsigned int i = 0; i < RTE_DIM(refused); i++) {
		char *why = patterns_fault(refused[i]);

		if (!why)
			fail_msg("%s is not refused", refused[i]);
		free(why);
	}
}

/* A bad rule of a file is named with its line. */
TEST_WITH(bad_rules_are_named, struct rig *rig, setup_engines_in_folder, teardown_folder)
{
	struct gpu_state tables;

	write_file("file", "web a{2}\nweb ^start\n");
	RIG_MAKE(rig, "NIDS", {"file", .text = "file"});
	assert_false(gpu_state_build(rig->nf, &tables));
	assert_null(tables.bytes);
}
