; SPDX-License-Identifier: GPL-2.0-or-later
((embedded_c) @injection.content (#set! injection.language "c"))
