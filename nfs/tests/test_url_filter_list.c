#include <stdio.h>
#include <unistd.h>

#include "core/random.h"
#include "functions/url_filter/list.h"
#include "tables/urls.h"
#include "tests/url_rig.h"

/* Every fault of a list is named, and none of it is used. */
RIG_TEST(faulty_lists_are_refused)
{
	static const char *const faulty[] = {
		"*.example.org",
		"example.org:80",
		"user@example.org",
		"[2001:db8::1]",
		"example.org/a?b",
		"exam ple.org",
		"a..b",
		".a",
		"example.org/a b",
		"http://",
		"/path",
		"example.org/\x01",
		"example.org/a#b",
		"x/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.org",
	};
	const struct nf_config config = {.name = "UrlFilter", .spare = rig->spare};

	for (unsigned int i = 0; i < RTE_DIM(faulty); i++) {
		char path[64], text[200];
		const struct nf_setting settings[] = {{"list", 0, path}};

		snprintf(text, sizeof(text), "# a list\nexample.net\n%s\n", faulty[i]);
		url_list_write(path, text);
		assert_null(nf_create(&config, settings, 1));
		unlink(path);
	}
	assert_null(nf_create(&config, &(struct nf_setting){"list", 0, "/no/such/file"}, 1));
}

/* Comments, empty lines, schemes, spaces and missing line ends are fine. */
RIG_TEST(lists_are_read_generously)
{
	url_filter_make(rig,
			"# comment\n\n  example.org  # more\r\nhttps://Example.COM./a/\n"
			"#x.net\n192.0.2.7\nlast.example",
			NULL, 0);
	assert_false(url_request_passes(rig, "example.org", "/"));
	assert_false(url_request_passes(rig, "example.com", "/a/b"));
	assert_false(url_request_passes(rig, "192.0.2.7:80", "/"));
	assert_false(url_request_passes(rig, "last.example", "/"));
	assert_true(url_request_passes(rig, "x.net", "/"));
	assert_true(url_request_passes(rig, "comment", "/"));
}

/* Whether an entry covers a host and normal path, by comparing texts. */
static bool entry_covers(const char *entry, const char *host, const char *path)
{
	const char *slash = strchr(entry, '/');
	const size_t domain = slash ? (size_t)(slash - entry) : strlen(entry);
	const size_t length = strlen(host), below = slash ? strlen(slash) : 0;

	if (length < domain || strncmp(host + length - domain, entry, domain) != 0 ||
	    (length > domain && host[length - domain - 1] != '.'))
		return false;
	return strncmp(path, slash ? slash : "", below) == 0 &&
	       (path[below] == '\0' || path[below] == '/');
}

/* A table of 1,000 generated entries covers what a search through all of them covers. */
RIG_TEST(tables_cover_as_a_search_does)
{
	enum { ENTRIES = 1000 };
	static char entries[ENTRIES][URLS_LONGEST];
	struct url_table *table = url_list_generate("test", ENTRIES, 5);
	uint64_t seed = 5, random = 1, covered = 0;

	assert_non_null(table);
	for (int i = 0; i < ENTRIES; i++)
		urls_next(&seed, entries[i]);
	for (int i = 0; i < 20000; i++) {
		char url[2 * URLS_LONGEST] = "", host[2 * URLS_LONGEST];
		const char *path;
		bool expected = false, found;

		if (random_below(&random, 3) == 0)
			strcpy(url, random_below(&random, 2) ? "a." : "x");
		strcat(url, entries[random_below(&random, ENTRIES)]);
		if (random_below(&random, 3) == 0)
			strcat(url, random_below(&random, 2) ? "/ads1" : "x");
		if (random_below(&random, 3) == 0) /* a part of it */
			url[random_below(&random, (uint32_t)strlen(url)) + 1] = '\0';
		path = strchrnul(url, '/');
		snprintf(host, sizeof(host), "%.*s", (int)(path - url), url);
		if (strcmp(path, "/") == 0)
			path = "";
		for (int j = 0; j < ENTRIES; j++)
			expected = expected || entry_covers(entries[j], host, path);
		found = url_table_covers(table, host, strlen(host), path, strlen(path));
		assert_int_equal(found, expected);
		covered += found;
	}
	assert_in_range(covered, 4000, 16000);
	url_table_destroy(table);
}

/* The generated list of a function is that of its seed. */
RIG_TEST(generated_lists_block_their_urls)
{
	uint64_t seed = 9;

	RIG_MAKE(rig, "UrlFilter", {"urls", 50}, {"seed", 9});
	for (int i = 0; i < 50; i++) {
		char url[URLS_LONGEST], text[MOST_TEXT];

		urls_next(&seed, url);
		snprintf(text, sizeof(text), "GET http://%s HTTP/1.1\r\n\r\n", url);
		assert_false(url_text_passes(rig, text));
	}
	assert_true(url_request_passes(rig, "example.org", "/"));
	rig_make(rig, "UrlFilter", &(struct nf_setting){"urls", 0}, 1);
	assert_true(url_request_passes(rig, "alpha-click1.com", "/"));
}
