#include "rack/spec.h"
#include "tests/files.h"
#include "tests/refusal.h"

/* A program that is right; line 1 is the first struct. */
#define GOOD                                                                                       \
	"struct ethernet_h {\n"                                                                    \
	"	bit<48> dst\n"                                                                     \
	"	bit<48> src\n"                                                                     \
	"	bit<16> type\n"                                                                    \
	"}\n"                                                                                      \
	"header eth instanceof ethernet_h\n"                                                       \
	"struct meta_t {\n"                                                                        \
	"	bit<32> port\n"                                                                    \
	"}\n"                                                                                      \
	"metadata instanceof meta_t\n"                                                             \
	"struct to_t {\n"                                                                          \
	"	bit<32> port\n"                                                                    \
	"}\n"                                                                                      \
	"action to args instanceof to_t {\n"                                                       \
	"	mov m.port t.port\n"                                                               \
	"	return\n"                                                                          \
	"}\n"                                                                                      \
	"table l2 {\n"                                                                             \
	"	key {\n"                                                                           \
	"		h.eth.dst exact\n"                                                         \
	"	}\n"                                                                               \
	"	actions {\n"                                                                       \
	"		to\n"                                                                      \
	"	}\n"                                                                               \
	"	default_action to args port 3 const\n"                                             \
	"	size 16\n"                                                                         \
	"}\n"
#define APPLY                                                                                      \
	"apply {\n"                                                                                \
	"	rx m.port\n"                                                                       \
	"	extract h.eth\n"                                                                   \
	"	table l2\n"                                                                        \
	"	emit h.eth\n"                                                                      \
	"	tx m.port\n"                                                                       \
	"}\n"

static struct spec *read_text(const char *text)
{
	write_file("file", text);
	return spec_read("file");
}

/* What a text is refused with: all that is printed. */
static const char *faults_of(const char *text)
{
	const struct caught caught = stderr_catch();

	spec_free(read_text(text));
	return stderr_release(&caught);
}

/* Every part of a program is there, with its line. */
NO_RIG_TEST(a_program_is_read)
{
	struct spec *spec = read_text("; a comment\n# another\n" GOOD
				      "regarray r size 0x10 initval 7 // r\n" APPLY);
	const struct spec_table *table;

	assert_non_null(spec);
	assert_int_equal(spec->n_structs, 3);
	assert_int_equal(spec->structs[0].fields[2].n_bits, 16);
	assert_int_equal(spec->headers[0].line, 8);
	assert_string_equal(spec->metadata, "meta_t");
	assert_string_equal(spec->actions[0].struct_name, "to_t");
	assert_string_equal(spec->actions[0].instructions.texts[0], "mov m.port t.port");
	table = &spec->tables[0];
	assert_int_equal(table->kind, SPEC_TABLE);
	assert_string_equal(table->keys.fields[0], "h.eth.dst");
	assert_int_equal(table->keys.matches[0], RTE_SWX_TABLE_MATCH_EXACT);
	assert_string_equal(table->actions.by_default, "to");
	assert_string_equal(table->actions.arguments, "port 3");
	assert_true(table->actions.constant);
	assert_int_equal(table->size, 16);
	assert_int_equal(spec->arrays[0].size, 16);
	assert_int_equal(spec->arrays[0].initial, 7);
	assert_int_equal(spec->apply.n, 5);
	assert_int_equal(spec->apply.lines[4], 36);
	spec_free(spec);
}

NO_RIG_TEST(learners_and_selectors_are_read)
{
	struct spec *spec = read_text(GOOD "learner l {\n"
					   "key {\n"
					   "h.eth.src\n"
					   "}\n"
					   "actions {\n"
					   "to @tableonly\n"
					   "to @defaultonly\n"
					   "}\n"
					   "default_action to args port 1\n"
					   "size 64\n"
					   "timeout {\n"
					   "30\n"
					   "60\n"
					   "}\n"
					   "}\n"
					   "selector s {\n"
					   "group_id m.port\n"
					   "selector {\n"
					   "h.eth.src\n"
					   "}\n"
					   "member_id m.port\n"
					   "n_groups_max 2\n"
					   "n_members_per_group_max 4\n"
					   "}\n" APPLY);
	const struct spec_table *table;

	assert_non_null(spec);
	table = &spec->tables[1];
	assert_int_equal(table->kind, SPEC_LEARNER);
	assert_int_equal(table->actions.in_entries[0], 1);
	assert_int_equal(table->actions.as_default[0], 0);
	assert_int_equal(table->actions.in_entries[1], 0);
	assert_int_equal(table->n_timeouts, 2);
	assert_int_equal(table->timeouts[1], 60);
	table = &spec->tables[2];
	assert_int_equal(table->kind, SPEC_SELECTOR);
	assert_string_equal(table->group_id, "m.port");
	assert_int_equal(table->members, 4);
	spec_free(spec);
}

/* Each mistake, and what it is refused with. Lines behind GOOD count from 28. */
static const struct {
	const char *text, *refusal;
} mistakes[] = {
	{"strict a {\n" GOOD APPLY, "file:1: \"strict\": is no statement\n"},
	{GOOD "struct a {\nbit<7> b\n}\n" APPLY,
	 "file:29: \"bit<7> b\": expected bit<BITS> NAME or varbit<BITS> NAME, in whole bytes\n"},
	{GOOD "struct a {\nvarbit<8> b\nbit<8> c\n}\n" APPLY,
	 "file:30: c: follows a varbit field, which must be the last\n"},
	{GOOD "struct a {\nbit<8> c\n", "file:28: no } ends this block\n"},
	{GOOD "struct a {\nbit<8> b\nbit<8> b\n}\n" APPLY, "file:28: a: has two fields b\n"},
	{GOOD "struct to_t {\nbit<8> b\n}\n" APPLY, "file:28: to_t: is also in line 11\n"},
	{GOOD "header x instanceof nothing\n" APPLY, "file:28: nothing: is no struct\n"},
	{GOOD "header eth instanceof to_t\n" APPLY, "file:28: eth: is also in line 6\n"},
	{GOOD "metadata instanceof to_t\n" APPLY, "file:28: metadata: is also in line 10\n"},
	{GOOD "action a args {\n" APPLY,
	 "file:28: \"action a args {\": expected action NAME args none { or "
	 "action NAME args instanceof STRUCT {\n"},
	{GOOD "action a args none {\nmov m.port 1\n}\n" APPLY,
	 "file:29: a: does not end with return, tx or drop\n"},
	{GOOD "action a args none {\ntable l2\nreturn\n}\n" APPLY,
	 "file:29: table: may only stand in apply\n"},
	{GOOD "regarray r size 0 initval 0\n" APPLY,
	 "file:28: \"regarray r size 0 initval 0\": expected regarray NAME size N initval VALUE\n"},
	{GOOD "table t {\nkey {\nh.eth.dst exact\nm.port exact\n}\nactions {\nto\n}\n"
	      "default_action to args port 1\n}\n" APPLY,
	 "file:31: m.port: is not in the same struct as h.eth.dst\n"},
	{GOOD "table t {\nkey {\nh.eth.to exact\n}\nactions {\nto\n}\n"
	      "default_action to args port 1\n}\n" APPLY,
	 "file:30: h.eth.to: is no field of a header or of the metadata\n"},
	{GOOD "table t {\nkey {\nh.eth.dst ternary\n}\nactions {\nto\n}\n"
	      "default_action to args port 1\n}\n" APPLY,
	 "file:30: \"h.eth.dst ternary\": expected FIELD exact, wildcard or lpm\n"},
	{GOOD "table t {\nactions {\nno\n}\ndefault_action to args port 1\n}\n" APPLY,
	 "file:30: no: is no action\n"
	 "file:32: to: is none of the table's actions that may be the default\n"},
	{GOOD "table t {\nactions {\nto\n}\n}\n" APPLY, "file:28: t: has no default_action\n"},
	{GOOD "table t {\ncolour red\nactions {\nto\n}\ndefault_action to args port 1\n}\n" APPLY,
	 "file:29: \"colour red\": is no clause of a table\n"},
	{GOOD, "file:27: no apply { ... }\n"},
	{GOOD "apply {\ntx m.port\n}\n", "file:28: apply: does not begin with rx\n"},
	{GOOD "apply {\nrx m.port\nfly h.eth\nadd m.port\ntx 0\n}\n",
	 "file:30: \"fly h.eth\": is no instruction\n"
	 "file:31: \"add m.port\": has a wrong number of operands\n"},
	{GOOD "apply {\nrx m.port\njmp THERE\nmov m.prt 1\nmov m.port t.port\nextract h.ip\n"
	      "regadd r 0 1\ntx 0\n}\n",
	 "file:30: \"jmp THERE\": THERE: expected a label of these instructions\n"
	 "file:31: \"mov m.prt 1\": m.prt: expected a field of a header or of the metadata\n"
	 "file:32: \"mov m.port t.port\": t.port: expected a field or a number\n"
	 "file:33: \"extract h.ip\": h.ip: expected a header\n"
	 "file:34: \"regadd r 0 1\": r: expected a register array\n"},
	{GOOD "apply {\nrx m.port\ncksub h.eth.type m.port\nckadd h.eth.type h.eth\n"
	      "ckadd h.eth.type h.eth.dst\ntx 0\n}\n",
	 "file:30: \"cksub h.eth.type m.port\": m.port: expected a field of a header, "
	 "of 16-bit words\n"
	 "file:31: \"ckadd h.eth.type h.eth\": h.eth: expected a field of a header, of 16-bit "
	 "words, "
	 "or a header of 32-bit words\n"},
	{GOOD "apply {\nrx m.port\nA : mov m.port 1\nA : tx 0\n}\n",
	 "file:31: label A: is also in line 30\n"},
};

NO_RIG_TEST(mistakes_are_named_by_line)
{
	for (unsigned int i = 0; i < RTE_DIM(mistakes); i++) {
		const char *printed = faults_of(mistakes[i].text);
		const size_t length = strlen(mistakes[i].refusal);

		if (strncmp(printed, mistakes[i].refusal, length) != 0 ||
		    strncmp(printed + length, "hint: ", 6) != 0)
			fail_msg("mistake %u:\n%sinstead of\n%s", i, printed, mistakes[i].refusal);
	}
}

/* Whatever is cut off or changed, a text is read or refused, without a crash. */
NO_RIG_TEST(damaged_texts_do_no_harm)
{
	static const char all[] = GOOD "regarray r size 4 initval 0\n" APPLY;
	char text[sizeof(all)];
	unsigned int seed = 1;

	for (int i = 0; i < 2000; i++) {
		memcpy(text, all, sizeof(all));
		for (int changes = 0; changes < 3; changes++)
			text[rand_r(&seed) % sizeof(all)] = "\n {}<>:.x0"[rand_r(&seed) % 10];
		text[i % 4 ? sizeof(all) - 1 : (size_t)rand_r(&seed) % sizeof(all)] = 0;
		faults_of(text);
	}
}

NO_RIG_TEST(missing_files_are_refused)
{
	assert_null(spec_read("none"));
}
