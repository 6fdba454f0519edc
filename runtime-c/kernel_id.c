// SPDX-License-Identifier: GPL-2.0-or-later
/* The first check at load: the module runs on the kernel for which it was compiled. */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>

#include "abi/abi.h"
#include "attach.h"
#include "build_id.h"
#include "kernel_id.h"

static int check_build_id(const struct spile_target *target)
{
	unsigned char found[SPILE_BUILD_ID_MAX] = { 0 };
	char expected_text[SPILE_BUILD_ID_TEXT], found_text[SPILE_BUILD_ID_TEXT];
	const void *at = (const void *)(target->build_id_address + spile_attach_slide());

	if (!target->build_id_bytes || !target->build_id_address || !spile_script.anchor_address)
		return 0;
	if (target->build_id_bytes <= sizeof(found) &&
	    !copy_from_kernel_nofault(found, at, target->build_id_bytes) &&
	    !memcmp(found, target->build_id, target->build_id_bytes))
		return 0;
	pr_err("%s: refused: compiled for the build %s of the kernel, this is another (%s there)\n",
	       THIS_MODULE->name,
	       spile_build_id_text(expected_text, target->build_id, target->build_id_bytes),
	       spile_build_id_text(found_text, found, target->build_id_bytes));
	return -EKEYREJECTED;
}

int spile_kernel_id_check(void)
{
	const char *release = init_utsname()->release;
	unsigned int i;

	if (spile_script.abi != SPILE_ABI_VERSION) {
		pr_err("%s: refused: script and runtime were built for different versions of spile (%u, %u)\n",
		       THIS_MODULE->name, spile_script.abi, SPILE_ABI_VERSION);
		return -ENOEXEC;
	}
	if (strcmp(release, spile_script.kernel_release)) {
		pr_err("%s: refused: compiled for kernel %s, this is %s\n",
		       THIS_MODULE->name, spile_script.kernel_release, release);
		return -ENOEXEC;
	}
	/* Kernels are moved by whole pages, at least. */
	if (spile_script.anchor_address && !PAGE_ALIGNED(spile_attach_slide())) {
		pr_err("%s: refused: register_kprobe is not where it was in the kernel compiled for\n",
		       THIS_MODULE->name);
		return -EKEYREJECTED;
	}
	if (spile_script.anchor_address)
		spile_slide = spile_attach_slide();
	for (i = 0; i < spile_script.target_count; i++) {
		const struct spile_target *target = &spile_script.targets[i];
		int error = target->name[0] ? 0 : check_build_id(target);

		if (error)
			return error;
	}
	return 0;
}
