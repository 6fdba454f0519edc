;;; systemtap-mode.el --- Mode for SystemTap scripts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-2.0-or-later
;; Version: 0.1.0
;; Package-Requires: ((emacs "26.1"))
;; Keywords: languages

;;; Commentary:

;; Highlighting and indentation of SystemTap scripts, and the language server of spile by Eglot:
;;
;;     (require 'systemtap-mode)
;;     (add-hook 'systemtap-mode-hook #'eglot-ensure)
;;
;; What scripts are checked against is a setting:
;;
;;     (setq-default eglot-workspace-configuration '(:spile (:release "6.1.0-56-amd64")))

;;; Code:

(require 'rx)

(defgroup systemtap nil
  "SystemTap scripts."
  :group 'languages)

(defcustom systemtap-indent 2
  "Columns by which a block is indented."
  :type 'integer
  :safe #'integerp)

(defcustom systemtap-server '("spile" "--language-server")
  "Program and arguments of the language server."
  :type '(repeat string))

(defconst systemtap-keywords
  '("probe" "function" "global" "private" "if" "else" "for" "foreach" "in" "limit" "return" "delete"
    "while" "break" "continue" "next" "try" "catch")
  "Reserved words that are no types.")

(defconst systemtap-types '("string" "long")
  "Types.")

(defconst systemtap-print-functions
  '("print" "println" "printf" "printd" "printdln" "print_char" "sprint" "sprintln" "sprintf" "sprintd" "sprintdln")
  "Functions that print.")

(defconst systemtap-operators
  '("cast" "defined" "entry" "var" "perf" "const" "enum" "enumname" "probewrite" "kregister" "uregister"
    "kderef" "uderef" "hist_log" "hist_linear" "count" "sum" "min" "max" "avg" "variance")
  "Operators, without their @.")

(defvar systemtap-mode-syntax-table
  (let ((table (make-syntax-table)))
    ;; # and // begin a comment up to the end of the line, /* one up to */.
    (modify-syntax-entry ?# "< b" table)
    (modify-syntax-entry ?/ ". 124b" table)
    (modify-syntax-entry ?* ". 23" table)
    (modify-syntax-entry ?\n "> b" table)
    (modify-syntax-entry ?_ "_" table)
    (modify-syntax-entry ?$ "'" table)
    (modify-syntax-entry ?@ "'" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?\\ "\\" table)
    (modify-syntax-entry ?% "." table)
    (modify-syntax-entry ?' "." table)
    (dolist (operator '(?+ ?- ?= ?< ?> ?& ?| ?! ?~ ?^ ?: ?.))
      (modify-syntax-entry operator "." table))
    table)
  "Syntax of SystemTap scripts.")

(defconst systemtap-syntax-propertize
  (syntax-propertize-rules
   ;; The # of $# and @# begins no comment.
   ("[$@]\\(#\\)" (1 "."))))

(defconst systemtap-font-lock-keywords
  `(;; Points of a probe, up to its body.
    ("\\_<probe\\_>\\([^{\"\n]*\\)" 1 font-lock-constant-face keep)
    ("@define\\_>[ \t]+\\(\\(?:\\sw\\|\\s_\\)+\\)" 1 font-lock-function-name-face)
    ("@define\\_>" . font-lock-preprocessor-face)
    ("\\_<function\\_>[ \t]+\\(\\(?:\\sw\\|\\s_\\)+\\)" 1 font-lock-function-name-face)
    ("->[ \t]*\\(\\(?:\\sw\\|\\s_\\)+\\)" 1 font-lock-variable-name-face)
    (,(concat "@" (regexp-opt systemtap-operators) "\\_>") . font-lock-builtin-face)
    ("[$@]\\(?:[0-9]+\\|#\\)" . font-lock-preprocessor-face)
    ("@\\(?:\\sw\\|\\s_\\)+" . font-lock-preprocessor-face)
    ("\\$\\$?[A-Za-z_][A-Za-z0-9_]*" . font-lock-variable-name-face)
    ("%[(?:){}]" . font-lock-preprocessor-face)
    (,(regexp-opt systemtap-keywords 'symbols) . font-lock-keyword-face)
    (,(regexp-opt systemtap-types 'symbols) . font-lock-type-face)
    (,(regexp-opt systemtap-print-functions 'symbols) . font-lock-builtin-face)
    ("\\_<\\([A-Za-z_][A-Za-z0-9_]*\\)[ \t]*(" 1 font-lock-function-name-face)
    ("\\_<\\(?:0[xX][0-9a-fA-F]+\\|[0-9]+\\)\\_>" . font-lock-constant-face))
  "What is highlighted.")

(defun systemtap--header-p ()
  "Whether the line at point ends with `if (...)' or `else'."
  (save-excursion
    (back-to-indentation)
    (cond
     ((looking-at "\\(?:}[ \t]*\\)?else[ \t]*\\(?:[#/].*\\)?$") t)
     ((looking-at "\\(?:}[ \t]*\\)?\\(?:else[ \t]+\\)?\\(?:if\\|while\\|for\\|foreach\\)[ \t]*(")
      (goto-char (1- (match-end 0)))
      (and (ignore-errors (forward-sexp) t)
           (looking-at "[ \t]*\\(?:[#/].*\\)?$"))))))

(defun systemtap--column ()
  "Column of the line at point, by the brackets and headers before it."
  (save-excursion
    (back-to-indentation)
    (let* ((open (nth 1 (syntax-ppss)))
           (closes (looking-at "[])}]"))
           (opens (looking-at "{"))
           (base (cond
                  ((not open) 0)
                  ;; Arguments stand below each other.
                  ((and (eq (char-after open) ?\() (not closes)) (save-excursion (goto-char open) (1+ (current-column))))
                  (t (save-excursion (goto-char open) (+ (current-indentation) (if closes 0 systemtap-indent))))))
           (line (line-number-at-pos)))
      (if (or closes opens)
          base
        ;; Headers directly before it, each a step.
        (let ((extra 0) (more t))
          (while more
            (forward-line -1)
            (setq more (and (< (line-number-at-pos) line) (not (bobp)) (systemtap--header-p)
                            (or (not open) (> (point) open))))
            (setq line (line-number-at-pos))
            (when more (setq extra (+ extra systemtap-indent))))
          (+ base extra))))))

(defun systemtap-indent-line ()
  "Indent the line as `spile --fmt' does."
  (interactive)
  (unless (nth 3 (save-excursion (syntax-ppss (line-beginning-position))))
    (let ((column (systemtap--column)))
      (if (<= (current-column) (current-indentation))
          (indent-line-to column)
        (save-excursion (indent-line-to column))))))

(defvar systemtap-imenu
  '(("Functions" "^[ \t]*\\(?:private[ \t]+\\)?function[ \t]+\\([A-Za-z_][A-Za-z0-9_]*\\)" 1)
    ("Macros" "^[ \t]*@define[ \t]+\\([A-Za-z_][A-Za-z0-9_]*\\)" 1)
    ("Probes" "^[ \t]*probe[ \t]+\\([^{\n]*[^{ \t\n]\\)" 1))
  "What can be jumped to.")

;;;###autoload
(define-derived-mode systemtap-mode prog-mode "SystemTap"
  "Mode for SystemTap scripts."
  (setq-local indent-tabs-mode nil)
  (setq-local comment-start "# ")
  (setq-local comment-start-skip "\\(?:#+\\|//+\\|/\\*+\\)[ \t]*")
  (setq-local comment-end "")
  (setq-local syntax-propertize-function systemtap-syntax-propertize)
  (setq-local font-lock-defaults '(systemtap-font-lock-keywords))
  (setq-local indent-line-function #'systemtap-indent-line)
  (setq-local imenu-generic-expression systemtap-imenu))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.stpm?\\'" . systemtap-mode))
;;;###autoload
(add-to-list 'interpreter-mode-alist '("stap\\|spile" . systemtap-mode))

(with-eval-after-load 'eglot
  (defvar eglot-server-programs)
  (add-to-list 'eglot-server-programs (cons 'systemtap-mode systemtap-server)))

(provide 'systemtap-mode)

;;; systemtap-mode.el ends here
