/* Runs the tests of a program. */
#include <rte_debug.h>

#include "tests/support.h"

#define MOST_TESTS 64

static struct CMUnitTest tests[MOST_TESTS];
static size_t n_tests;

void test_register(struct CMUnitTest test)
{
	RTE_VERIFY(n_tests < MOST_TESTS);
	tests[n_tests++] = test;
}

int main(int argc, char **argv)
{
	return argc > 0 ? test_main(argv[0], tests, n_tests) : 1;
}
