/* The members of tools' inputs with the edited file, or with the command. Each list ends with NULL. */

#ifndef TAILHOOK_SCAN_TOOLS_H
#define TAILHOOK_SCAN_TOOLS_H

#include <stddef.h>

static const char *const tailhook_file_path_tools[] = {"Edit", "Write", "MultiEdit", "write_file", "replace", NULL};
static const char *const tailhook_notebook_tools[] = {"NotebookEdit", NULL};
static const char *const tailhook_path_tools[] = {"edit", "create", "str_replace_editor", NULL};
static const char *const tailhook_command_tools[] = {
    "Bash", "PowerShell", "shell", "shell_command", "local_shell", "run_shell_command", "bash", "powershell", NULL};
static const char *const tailhook_cmd_tools[] = {"exec_command", NULL};

/* Beginnings of the lines with a file's name, in a patch for apply_patch. */
static const char *const tailhook_patch_lines[] = {"*** Add File: ", "*** Update File: ", "*** Delete File: ", NULL};

#endif
