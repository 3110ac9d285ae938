/* The program: picks the command, parses its options, runs it. Results go to stdout, all else to
 * stderr. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/exit_code.h"
#include "core/base/cpu_features.h"
#include "core/job/codes.h"

static const struct command commands[] = {
    {"run", COMMAND_RUN, "[INPUT...] -p PROMPT [-o OUT.jsonl]",
     "Run the model over documents: files, directories, JSONL, pipes. One JSONL row a document.",
     "  sheaf run contracts/ -p 'List the parties.' -o out.jsonl\n"
     "  cat report.txt | sheaf run -p 'Summarize.'\n"
     "  sheaf run papers/ --prompts questions.jsonl -o answers.jsonl --resume\n"
     "  sheaf run --config job.yaml\n",
     command_run},
    {"plan", COMMAND_PLAN, "[INPUT...] -p PROMPT",
     "Read and tokenize everything, compute nothing: tokens, what is too long, memory, time, cost.",
     "  sheaf plan contracts/ -p 'List the parties.'\n"
     "  sheaf plan a.txt -p 'Summarize.' --show-prompt a.txt\n",
     command_plan},
    {"verify", COMMAND_VERIFY, "[TEXT_FILE...]",
     "Compare this device and KV type with the float64 reference on your own text.",
     "  sheaf verify report.txt --kv-dtype int8\n"
     "  sheaf verify --rows out.jsonl contracts/ -p 'List the parties.'\n",
     command_verify},
    {"tokenize", COMMAND_TOKENIZE, "[FILE...]", "Print token ids, one JSON line a file.",
     "  sheaf tokenize report.txt\n  cat report.txt | sheaf tokenize --ids-only\n",
     command_tokenize},
    {"model", COMMAND_MODEL, "info", "Print what a model file holds.",
     "  sheaf model info --model llama.gguf\n", command_model},
    {"bench", COMMAND_BENCH, "matmul|attention [BATCH...]|tokenizer|ceilings",
     "Measure kernels against what this machine can do.",
     "  sheaf bench matmul\n  sheaf bench attention --isa avx2\n"
     "  sheaf bench attention q2k 8q1s1k --heads 9 --kv-heads 3 --backward\n",
     command_bench},
    {"profile", COMMAND_PROFILE, "[INPUT...] -p PROMPT [--report FILE.json]",
     "Run documents under the profiler: where the time goes, and which setting to change.",
     "  sheaf profile contracts/ -p 'List the parties.' --limit 20\n"
     "  sheaf profile --config job.yaml --report profile.json --trace trace.json\n",
     command_profile},
    {"tune", COMMAND_TUNE, "[INPUT...] -p PROMPT -o JOB.yaml",
     "Try the profiler's advice on the first documents and keep what measurably helps.",
     "  sheaf tune contracts/ -p 'List the parties.' --limit 20 -o job.yaml\n"
     "  sheaf run --config job.yaml\n",
     command_tune},
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_overview(FILE *out) {
    fprintf(out, "usage: sheaf COMMAND [OPTION...]\n\n"
                 "Runs a language model over a pile of long documents, on the machine you have.\n\n"
                 "commands:\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\n'sheaf COMMAND -h' shows a command's options, --help all of them;\n"
                 "'sheaf help codes' the error codes of rows\n");
}

static void print_version(void) {
    struct cpu_features features = cpu_features_detect();
    printf("sheaf %s (%s, gcc %s)\ncpu: %s, best instruction set %s%s\n", SHEAF_VERSION,
#ifdef NDEBUG
           "release",
#else
           "debug",
#endif
           __VERSION__, features.model_name, cpu_features_isa_name(cpu_features_best(&features)),
           features.avx512_bf16 ? " with bf16" : "");
}

static const struct command *find_command(const char *name) {
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int usage_error(const char *message, const char *hint) {
    fprintf(stderr, "sheaf: %s\ntry 'sheaf %s'\n", message, hint);
    return EXIT_NOT_STARTED;
}

static void print_codes(void) {
    printf("error codes of rows; those marked * may be gone in another run (--retry-errors)\n");
    for (size_t i = 0; i < codes_error_count(); i++) {
        const struct error_code *code = codes_error_at(i);
        printf("  %-15s%c %s\n", code->name, code->retryable ? '*' : ' ', code->meaning);
    }
}

static int show_help(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[2], "codes") == 0) {
        print_codes();
        return EXIT_ALL_DONE;
    }
    const struct command *command = argc > 2 ? find_command(argv[2]) : NULL;
    if (argc > 2 && !command)
        return usage_error("there is no such command", "help");
    if (command)
        arguments_print_help(stdout, command, true);
    else
        print_overview(stdout);
    return EXIT_ALL_DONE;
}

static int run_command(const struct command *command, int argc, char **argv) {
    struct arena arena;
    arena_init(&arena, 1 << 16, (size_t)1 << 30);
    struct arguments arguments;
    struct error error;
    int code = EXIT_ALL_DONE;
    if (arguments_parse(&arguments, command, argc, argv, &arena, &error) != STATUS_OK) {
        char hint[64];
        snprintf(hint, sizeof hint, "%s -h", command->name);
        code = usage_error(error.text, hint);
    } else if (arguments.settings.show_help) {
        arguments_print_help(stdout, command, arguments.long_help);
    } else if (arguments.settings.show_version) {
        print_version();
    } else {
        code = command->run(&arguments.settings, &arguments.inputs, &arena);
    }
    arena_deinit(&arena);
    return code;
}

/* A file opened later must not become stdin, stdout or stderr because one of them is closed: their
 * places are taken, and using them fails as it should. */
static void occupy_standard_files(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return;
    }
}

/* Results that did not reach stdout are no success. `run` writes its rows itself. */
static int check_stdout(int code) {
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return code;
    fprintf(stderr, "sheaf: cannot write everything to stdout\n");
    return EXIT_STOPPED_EARLY;
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_NOT_STARTED;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        print_version();
        return EXIT_ALL_DONE;
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "-h") == 0)
        return show_help(argc, argv);
    const struct command *command = find_command(argv[1]);
    if (command)
        return run_command(command, argc - 2, argv + 2);
    char message[256];
    snprintf(message, sizeof message, "there is no command '%.100s'", argv[1]);
    return usage_error(message, "help");
}

int main(int argc, char **argv) {
    occupy_standard_files();
    return check_stdout(dispatch(argc, argv));
}
