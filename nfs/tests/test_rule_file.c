/* Rules from a file, in place of the built-in ones. */
#include "tests/files.h"
#include "tests/offloading.h"
#include "tests/refusal.h"

#define FILE_TEST(test)                                                                            \
	TEST_WITH(test, struct rig *rig, setup_engines_in_folder, teardown_folder)

static const struct nf_setting of_file[] = {{"file", .text = "file"}};

/* Whether a payload passes the rig's function. */
static bool passes(struct rig *rig, const char *payload)
{
	rig_offer(rig, packet_with(rig, 1, payload), 1);
	return rig->out.n == 1;
}

/* An expression goes to the end of its line, with its spaces and signs of comments. */
FILE_TEST(rules_of_a_file_replace_the_built_in_ones)
{
	write_file("file", "# ours\n"
			   "\n"
			   "web GET /secret[0-9]\n"
			   "  chat\thello # [Ww]orld  \r\n"
			   "mail \\x00\\xff");
	rig_make(rig, "PacketFilter", of_file, 1);
	assert_false(passes(rig, "GET /secret7"));
	assert_true(passes(rig, "GET /secret"));
	assert_false(passes(rig, "say hello # World, please"));
	assert_true(passes(rig, "hello"));
	assert_true(passes(rig, witness_of("ssh")));
	assert_int_equal(rig_count(rig, "dropped"), 2);
}

/* Alerts are of the class in the file. */
FILE_TEST(alerts_are_of_the_class_in_the_file)
{
	const struct nf_setting settings[] = {of_file[0], {"dropped_class", 3}};

	write_file("file", "remote open sesame\nchat sesame.seed\n");
	rig_make(rig, "NIDS", settings, 2);
	assert_true(passes(rig, "open sesame"));
	assert_false(passes(rig, "open sesame seed"));
	assert_counts(rig, {"alerts_remote", 1}, {"alerts_chat", 1}, {"alerts", 2}, {"matches", 3});
}

/* Functions with other rules, and without a file, are not concerned. */
FILE_TEST(functions_have_rules_of_their_own)
{
	struct nf_config config = {.name = "FlowMonitor", .execution = NF_RUN_TO_COMPLETION};
	struct nf *other;

	memcpy(config.accelerators, rig->accelerators, sizeof(config.accelerators));
	write_file("file", "web one\n");
	other = nf_create(&config, of_file, 1);
	assert_non_null(other);
	write_file("file", "web two\n");
	rig_make(rig, "PacketFilter", of_file, 1);
	assert_true(passes(rig, "one"));
	assert_false(passes(rig, "two"));
	nf_destroy(other);
	assert_false(passes(rig, "two"));
	rig_make(rig, "PacketFilter", NULL, 0);
	assert_true(passes(rig, "two"));
	assert_false(passes(rig, witness_of("ssh")));
}

/* What a function prints that refuses the file. */
static const char *refused(const struct rig *rig, const char *name)
{
	struct nf_config config = {.name = name, .execution = NF_RUN_TO_COMPLETION};
	struct caught caught;
	const char *printed;
	struct nf *nf;

	memcpy(config.accelerators, rig->accelerators, sizeof(config.accelerators));
	caught = stderr_catch();
	nf = nf_create(&config, of_file, 1);
	printed = stderr_release(&caught);
	assert_null(nf);
	return printed;
}

static const char hint[] = "hint: CLASS EXPRESSION, as `web GET /admin[^ ]* HTTP/1`; CLASS is "
			   "peer-to-peer, remote, chat, mail, media, store, web or network\n";

/* Every fault is named with its line. */
FILE_TEST(every_fault_of_a_file_is_named)
{
	static const char *const scanning[] = {"FlowMonitor", "IPCompGateway", "NIDS",
					       "PacketFilter"};
	char expected[1024];

	write_file("file", "web GET\nWeb GET\nweb\nweb (\nweb a*\n");
	snprintf(expected, sizeof(expected),
		 "file:2: Web: not a class\n"
		 "file:3: no expression\n"
		 "file:4: (: Missing close parenthesis for group started at index 0.\n"
		 "file:5: a*: Pattern matches empty buffer; use HS_FLAG_ALLOWEMPTY to enable "
		 "support.\n%s",
		 hint);
	for (unsigned int i = 0; i < RTE_DIM(scanning); i++)
		assert_string_equal(refused(rig, scanning[i]), expected);
}

/* A file without rules would let pass what was to be found. */
FILE_TEST(a_file_without_rules_is_refused)
{
	char expected[512];

	write_file("file", "# none\n");
	snprintf(expected, sizeof(expected), "file:1: no rules\n%s", hint);
	assert_string_equal(refused(rig, "NIDS"), expected);
	unlink("file");
	assert_string_equal(refused(rig, "NIDS"), "NIDS: file: No such file or directory\n");
}
