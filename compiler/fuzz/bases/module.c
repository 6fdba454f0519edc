// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A small module as gcc 12 writes one, which the target "file" damages (module.bin):
 *   gcc -g -gdwarf-5 -O2 -fdebug-prefix-map=$PWD=. -c module.c -o module.bin
 * With line tables, lists of ranges and locations, inlined code, bit-fields, unions, and relocations of all of it.
 */
struct list { struct list *next, *prev; };
enum state { IDLE, BUSY = 5, GONE = -1 };
struct item {
	struct list list;
	union { long number; char text[16]; };
	unsigned int first : 3, rest : 29;
	enum state state;
	int (*run)(struct item *, int);
	int counts[4][2];
};

extern struct item *find(int key);
extern void say(const char *text, ...);
static struct item table[8];
int register_kprobe_count;

static inline __attribute__((always_inline)) int weigh(struct item *item, int by)
{
	int sum = 0, i;

	for (i = 0; i < by; i++)
		sum += item->counts[i & 3][i & 1] * i;
	return sum;
}

static __attribute__((noinline)) int take(struct item *item, int many)
{
	if (item->state == GONE)
		say("gone %d", many);
	return weigh(item, many) + weigh(item + 1, 3);
}

int run(int key, const char *name)
{
	struct item *item = find(key);
	volatile long copy = item ? item->number : 0;

	if (!item)
		return -1;
	switch (item->state) {
	case IDLE:
		item->run = take;
		/* fall through */
	case BUSY:
		return take(item, key) + (int)copy;
	default:
		say(name);
	}
	table[key & 7] = *item;
	return register_kprobe_count++;
}

struct module_part { int state; struct list list; char name[56]; char rest[64]; };
struct module_part this_module __attribute__((section(".gnu.linkonce.this_module"))) = { 0, { 0, 0 }, "module" };
static const char information[] __attribute__((section(".modinfo"), used)) = "license=GPL\0name=module\0spile_guru=no";
