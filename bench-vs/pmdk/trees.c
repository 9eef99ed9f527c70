/*
 * The trees among libpmemobj's examples, under the workloads of `sapwood-bench trees`.
 *
 *     pmdk-trees btree|ctree|rbtree POOL BYTES
 *
 * creates a pool file of so many bytes with one empty tree, and answers an empty run. It then takes
 * commands on its standard input until that ends:
 *
 *     command:  VERB COUNT \n  entries          answer:  NANOSECONDS COUNT \n  entries
 *                                                    or  error WHAT \n
 *
 * An entry is a key and a value, 8 bytes each in the machine's order. The clock runs from the first
 * operation to the last: neither entries that come in nor those that go out are in its time.
 * PMEM_IS_PMEM_FORCE says how the library makes a commit last: 1, by flushes of cache lines, which
 * only the process need outlive; 0, by msync.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libpmemobj.h>
#include <libpmemobj/ctl.h>

#include "btree_map.h"
#include "ctree_map.h"
#include "rbtree_map.h"

#define LAYOUT "sapwood-bench"
/* Of a small object, before its bytes. */
#define HEADER_BYTES 16
/* Of a value's object. */
#define VALUE_BYTES 16

struct entry {
	uint64_t key;
	uint64_t value;
};

typedef int visit(uint64_t key, PMEMoid value, void *arg);

/*
 * Where the 8 bytes of a value are. A tree that never looks at the object that an identifier names
 * keeps them in the identifier; the crit-bit tree asks for the object's type.
 */
enum values {
	IN_IDENTIFIER,
	IN_OBJECT,
};

/* A kind of tree. The map is the pool's root object. */
struct tree {
	const char *name;
	enum values values;
	int (*create)(PMEMobjpool *pop, PMEMoid *map);
	int (*insert)(PMEMobjpool *pop, PMEMoid map, uint64_t key, PMEMoid value);
	PMEMoid (*remove)(PMEMobjpool *pop, PMEMoid map, uint64_t key);
	PMEMoid (*get)(PMEMobjpool *pop, PMEMoid map, uint64_t key);
	int (*walk)(PMEMobjpool *pop, PMEMoid map, visit *visit, void *arg);
};

#define TYPED(kind, map) ((TOID(struct kind##_map)){.oid = (map)})
#define DEFINE_TREE(kind)                                                                          \
	static int kind##_create(PMEMobjpool *pop, PMEMoid *map)                                   \
	{                                                                                          \
		return kind##_map_create(pop, (TOID(struct kind##_map) *)map, NULL);               \
	}                                                                                          \
	static int kind##_insert(PMEMobjpool *pop, PMEMoid map, uint64_t key, PMEMoid value)       \
	{                                                                                          \
		return kind##_map_insert(pop, TYPED(kind, map), key, value);                       \
	}                                                                                          \
	static PMEMoid kind##_remove(PMEMobjpool *pop, PMEMoid map, uint64_t key)                  \
	{                                                                                          \
		return kind##_map_remove(pop, TYPED(kind, map), key);                              \
	}                                                                                          \
	static PMEMoid kind##_get(PMEMobjpool *pop, PMEMoid map, uint64_t key)                     \
	{                                                                                          \
		return kind##_map_get(pop, TYPED(kind, map), key);                                 \
	}                                                                                          \
	static int kind##_walk(PMEMobjpool *pop, PMEMoid map, visit *visit, void *arg)             \
	{                                                                                          \
		return kind##_map_foreach(pop, TYPED(kind, map), visit, arg);                      \
	}
#define TREE(kind, values)                                                                         \
	{                                                                                          \
		#kind, values, kind##_create, kind##_insert, kind##_remove, kind##_get, kind##_walk        \
	}

DEFINE_TREE(btree)
DEFINE_TREE(ctree)
DEFINE_TREE(rbtree)

static const struct tree TREES[] = {
	TREE(btree, IN_IDENTIFIER),
	TREE(ctree, IN_OBJECT),
	TREE(rbtree, IN_IDENTIFIER),
};

static const struct tree *tree;
static unsigned value_class;
static PMEMobjpool *pop;
static PMEMoid map;

/* Entries that came with a command, and those that its answer has. */
static struct entry *given, *found;
static size_t given_count, found_count, given_room, found_room;

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char *format, ...)
{
	va_list words;
	va_start(words, format);
	fputs("error ", stdout);
	vprintf(format, words);
	putchar('\n');
	va_end(words);
	exit(EXIT_FAILURE);
}

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Within a transaction. An identifier with an offset is not null. */
static PMEMoid new_value(uint64_t value)
{
	if (tree->values == IN_IDENTIFIER)
		return (PMEMoid){.pool_uuid_lo = value, .off = 1};
	PMEMoid oid = pmemobj_tx_xalloc(sizeof(value), 0, POBJ_CLASS_ID(value_class));
	*(uint64_t *)pmemobj_direct(oid) = value;
	return oid;
}

static uint64_t value_of(PMEMoid oid)
{
	return tree->values == IN_IDENTIFIER ? oid.pool_uuid_lo : *(uint64_t *)pmemobj_direct(oid);
}

/* Memory that was written, so that the clock sees no page fault. */
static void make_room(struct entry **entries, size_t *room, size_t count)
{
	if (count <= *room)
		return;
	*entries = realloc(*entries, count * sizeof(**entries));
	if (*entries == NULL)
		fail("no memory for %zu entries", count);
	memset(*entries + *room, 1, (count - *room) * sizeof(**entries));
	*room = count;
}

static void note(uint64_t key, uint64_t value)
{
	if (found_count == found_room)
		make_room(&found, &found_room, 2 * found_room + 1);
	found[found_count++] = (struct entry){key, value};
}

/* Within a transaction. */
static void insert(const struct entry *entry)
{
	tree->insert(pop, map, entry->key, new_value(entry->value));
}

/* Within a transaction. A value's object goes, too: the trees leave it to their caller. */
static void take(const struct entry *entry)
{
	PMEMoid value = tree->remove(pop, map, entry->key);
	if (OID_IS_NULL(value))
		return;
	note(entry->key, value_of(value));
	if (tree->values == IN_OBJECT)
		pmemobj_tx_free(value);
}

static void each(void (*change)(const struct entry *))
{
	for (size_t at = 0; at < given_count; at++) {
		TX_BEGIN(pop) {
			change(&given[at]);
		} TX_ONABORT {
			fail("a transaction ended: %s", pmemobj_errormsg());
		} TX_END
	}
}

static void together(void (*change)(const struct entry *))
{
	TX_BEGIN(pop) {
		for (size_t at = 0; at < given_count; at++)
			change(&given[at]);
	} TX_ONABORT {
		fail("the transaction ended: %s", pmemobj_errormsg());
	} TX_END
}

static void insert_each(void)
{
	each(insert);
}

static void remove_each(void)
{
	each(take);
}

static void insert_all(void)
{
	together(insert);
}

static void remove_all(void)
{
	together(take);
}

static void get_all(void)
{
	for (size_t at = 0; at < given_count; at++) {
		PMEMoid value = tree->get(pop, map, given[at].key);
		if (!OID_IS_NULL(value))
			note(given[at].key, value_of(value));
	}
}

static int visit_entry(uint64_t key, PMEMoid value, void *arg)
{
	(void)arg;
	note(key, value_of(value));
	return 0;
}

static void iterate(void)
{
	tree->walk(pop, map, visit_entry, NULL);
}

/* Answers one entry: its value is the bytes of all objects. */
static void count_bytes(void)
{
	uint64_t bytes = 0;
	for (PMEMoid oid = pmemobj_first(pop); !OID_IS_NULL(oid); oid = pmemobj_next(oid))
		bytes += pmemobj_alloc_usable_size(oid) + (pmemobj_type_num(oid) ? HEADER_BYTES : 0);
	note(0, bytes);
}

static const struct {
	const char *name;
	void (*run)(void);
} VERBS[] = {
	{"insert-each", insert_each}, {"remove-each", remove_each}, {"insert-all", insert_all},
	{"remove-all", remove_all},   {"get", get_all},             {"iterate", iterate},
	{"bytes", count_bytes},
};

static void answer(uint64_t elapsed)
{
	printf("%" PRIu64 " %zu\n", elapsed, found_count);
	fwrite(found, sizeof(*found), found_count, stdout);
	fflush(stdout);
	found_count = 0;
}

static void run(const char *verb)
{
	for (size_t at = 0; at < sizeof(VERBS) / sizeof(*VERBS); at++) {
		if (strcmp(VERBS[at].name, verb) == 0) {
			uint64_t begin = now();
			VERBS[at].run();
			answer(now() - begin);
			return;
		}
	}
	fail("no verb is called %s", verb);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		fail("usage: pmdk-trees btree|ctree|rbtree POOL BYTES");
	for (size_t at = 0; at < sizeof(TREES) / sizeof(*TREES); at++) {
		if (strcmp(TREES[at].name, argv[1]) == 0)
			tree = &TREES[at];
	}
	if (tree == NULL)
		fail("no tree is called %s", argv[1]);
	pop = pmemobj_create(argv[2], LAYOUT, strtoull(argv[3], NULL, 10), 0600);
	if (pop == NULL)
		fail("%s: %s", argv[2], pmemobj_errormsg());
	/* The least that an object can take: no header, and so no type. */
	struct pobj_alloc_class_desc class = {
		.unit_size = VALUE_BYTES, .units_per_block = 4096, .header_type = POBJ_HEADER_NONE};
	if (pmemobj_ctl_set(pop, "heap.alloc_class.new.desc", &class) != 0)
		fail("no class of values: %s", pmemobj_errormsg());
	value_class = class.class_id;
	PMEMoid *root = pmemobj_direct(pmemobj_root(pop, sizeof(*root)));
	if (root == NULL || tree->create(pop, root) != 0)
		fail("the tree is not created: %s", pmemobj_errormsg());
	map = *root;
	answer(0);

	char verb[32];
	while (scanf("%31s %zu", verb, &given_count) == 2 && getchar() == '\n') {
		make_room(&given, &given_room, given_count);
		make_room(&found, &found_room, given_count);
		if (fread(given, sizeof(*given), given_count, stdin) != given_count)
			fail("%s: %zu entries did not come", verb, given_count);
		run(verb);
	}
	return EXIT_SUCCESS;
}
