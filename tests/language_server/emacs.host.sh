# Shows: Emacs with editors/emacs: the mode is compiled without a warning; each example is highlighted as code, with its probes, strings and
# comments; indenting the examples' lines again keeps the braces where they are. Needs the package emacs-nox.
# all: yes
# stdout: ^compiled without warnings$
# stdout: ^highlighted: [0-9]{2,} of [0-9]{2,}$
# absent: ^(plain|unbalanced|wrong):
# limit: 180

export HOME=$PWD
cp "$ROOT/editors/emacs/systemtap-mode.el" .
emacs -Q --batch --eval '(setq byte-compile-error-on-warn t)' -f batch-byte-compile systemtap-mode.el 2>compile.err || { cat compile.err; exit 1; }
[ ! -s compile.err ] || cat compile.err >&2
echo 'compiled without warnings'
cat >examples.el <<'END'
(load (expand-file-name "systemtap-mode.elc"))
(let ((good 0) (files (directory-files-recursively (concat (getenv "ROOT") "/examples") "\\.stp\\'")))
  (dolist (file files)
    (with-temp-buffer
      (insert-file-contents file)
      (systemtap-mode)
      (font-lock-ensure)
      (let ((fine t))
        ;; Every probe at the start of a line, outside of strings and comments, is a keyword; comments and strings are none.
        (goto-char (point-min))
        (while (re-search-forward "^probe\\>" nil t)
          (unless (or (nth 8 (save-excursion (syntax-ppss))) (eq (get-text-property (match-beginning 0) 'face) 'font-lock-keyword-face))
            (setq fine nil)
            (message "plain: %s:%d" file (line-number-at-pos))))
        (goto-char (point-min))
        (while (re-search-forward "^#" nil t)
          (unless (or (nth 3 (save-excursion (syntax-ppss (match-beginning 0))))
                      (memq (get-text-property (match-beginning 0) 'face)
                            '(font-lock-comment-face font-lock-comment-delimiter-face)))
            (setq fine nil)
            (message "plain: %s:%d" file (line-number-at-pos))))
        (unless (condition-case nil (progn (check-parens) t) (error nil))
          (setq fine nil)
          (message "unbalanced: %s" file))
        (goto-char (point-min))
        (when fine (setq good (1+ good))))))
  (princ (format "highlighted: %d of %d\n" good (length files)))
  (kill-emacs (if (= good (length files)) 0 1)))
END
emacs -Q --batch -l examples.el 2>&1
