#include "tables/urls.h"

#include <stdio.h>

#include "core/random.h"

#define N(words) (sizeof(words) / sizeof((words)[0]))

static const char *const hosts[] = {"", "", "", "www.", "ads.", "cdn.", "track.", "static."};
static const char *const names[] = {"alpha",  "banner", "casino", "click",  "coupon", "data",
				    "fast",   "game",   "lucky",  "market", "media",  "metric",
				    "online", "pixel",  "prize",  "search", "shop",   "stream"};
static const char *const tops[] = {"com", "com", "com", "net", "org", "info", "example", "co.uk"};
static const char *const segments[] = {"ads",   "api", "banners", "click", "download",
				       "img",   "js",  "login",   "pixel", "promo",
				       "track", "v1",  "video",   "watch"};

static const char *one_of(const char *const *words, uint32_t n, uint64_t *random)
{
	return words[random_below(random, n)];
}

void urls_next(uint64_t *random, char url[URLS_LONGEST])
{
	const char *host = one_of(hosts, N(hosts), random);
	const char *first = one_of(names, N(names), random);
	const char *second = one_of(names, N(names), random);
	const uint32_t number = random_below(random, 1000);
	const char *top = one_of(tops, N(tops), random);
	int length = snprintf(url, URLS_LONGEST, "%s%s-%s%u.%s", host, first, second, number, top);
	uint32_t depth = random_below(random, 5);

	for (depth = depth < 3 ? 0 : 1 + random_below(random, 3); depth > 0; depth--) {
		const char *segment = one_of(segments, N(segments), random);

		length += snprintf(url + length, (size_t)(URLS_LONGEST - length), "/%s%u", segment,
				   random_below(random, 10));
	}
}
