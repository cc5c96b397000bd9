// SPDX-License-Identifier: Apache-2.0
// interface.md 1.2 and E17: what a command line means, and what is said about one that means nothing.
#include "options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace {

using namespace holdfast::cli;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A writable argv, as main has it: the parser blots passwords out of it.
struct command_line {
  explicit command_line(std::vector<std::string> typed) : words{std::move(typed)} {
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
  }
  settings parse() {
    return parse_options(parse_command(words.front()), static_cast<int>(words.size()), pointers.data());
  }
  std::vector<std::string> words;
  std::vector<char*> pointers{};
};

settings parse(std::vector<std::string> typed) { return command_line{std::move(typed)}.parse(); }

std::string complaint(std::vector<std::string> typed) {
  try {
    command_line line{std::move(typed)};
    line.parse();
  } catch (const usage_error& e) {
    return std::string{e.what()} + "\n" + e.fix;
  }
  return "no complaint";
}

TEST(options, of_flock_mean_what_they_mean_there) {
  const auto s = parse({"run", "-n", "-x", "-o", "-E", "9", "-w", "2.5", "nightly", "true"});
  EXPECT_TRUE(s.try_once);
  EXPECT_EQ(s.conflict_exit, 9);
  EXPECT_EQ(s.wait, 2500ms);
  EXPECT_EQ(s.name, "nightly");
  EXPECT_THAT(s.words, ElementsAre("true"));
}

TEST(options, a_list_is_opened_again_only_when_that_is_asked_for) {
  EXPECT_TRUE(parse({"quorum", "replace", "--reopen", "--with", "redis+quorum://a,b,c"}).reopen);
  EXPECT_FALSE(parse({"quorum", "replace", "--with", "redis+quorum://a,b,c"}).reopen);
}

// Taken for "not given", an unset variable of a script would mean another server, no password, or no TLS.
TEST(options, that_name_something_refuse_an_empty_name) {
  for (const auto* option : {"--uri", "--password-file", "--cacert", "--cert", "--key"}) {
    EXPECT_THAT(complaint({"run", option, "", "x", "true"}), HasSubstr("its value is empty")) << option;
  }
  EXPECT_THAT(complaint({"quorum", "replace", "--with="}), HasSubstr("--with: its value is empty"));
  EXPECT_THAT(complaint({"lab", "single", "--directory="}), HasSubstr("--directory: its value is empty"));
}

TEST(options, long_spellings_of_flock_are_accepted) {
  EXPECT_TRUE(parse({"run", "--nb", "x", "true"}).try_once);
  EXPECT_TRUE(parse({"run", "--nonblock", "x", "true"}).try_once);
  EXPECT_EQ(parse({"run", "--timeout", "3", "x", "true"}).wait, 3s);
  EXPECT_EQ(parse({"run", "--wait=3", "x", "true"}).wait, 3s);
  EXPECT_EQ(parse({"run", "--conflict-exit-code=4", "x", "true"}).conflict_exit, 4);
}

TEST(options, are_accepted_on_both_sides_of_the_name) {
  const auto s = parse({"run", "-n", "x", "-t", "3s", "true"});
  EXPECT_TRUE(s.try_once);
  EXPECT_EQ(s.ttl, 3s);
}

// interface.md 0, finding 1: etcdctl takes the child's `-c` for its own.
TEST(options, are_never_taken_from_the_command) {
  const auto s = parse({"run", "x", "sh", "-c", "echo -n", "--ttl"});
  EXPECT_EQ(s.shell_command, std::nullopt);
  EXPECT_THAT(s.words, ElementsAre("sh", "-c", "echo -n", "--ttl"));
}

TEST(options, end_at_two_dashes) {
  EXPECT_THAT(parse({"run", "x", "--", "-n", "--", "b"}).words, ElementsAre("-n", "--", "b"));
  EXPECT_THAT(parse({"run", "x", "-n", "--", "true", "-n"}).words, ElementsAre("true", "-n"));
}

TEST(options, two_dashes_before_the_name_make_it_literal) {
  const auto s = parse({"run", "-n", "--", "-odd-name", "--", "true"});
  EXPECT_EQ(s.name, "-odd-name");
  EXPECT_THAT(s.words, ElementsAre("true"));
}

TEST(options, a_value_of_two_dashes_does_not_end_them) {
  const auto s = parse({"run", "--owner", "--", "-n", "x", "true"});
  EXPECT_EQ(s.owner, "--");
  EXPECT_TRUE(s.try_once);
}

TEST(options, shell_string_stands_on_either_side_of_the_name) {
  EXPECT_EQ(parse({"run", "x", "-c", "a && b"}).shell_command, "a && b");
  EXPECT_EQ(parse({"run", "-c", "a && b", "x"}).shell_command, "a && b");
}

TEST(options, replicas_are_a_number_and_a_duration) {
  const auto s = parse({"hold", "--replicas", "2", "--replicas-timeout=300ms", "x"});
  EXPECT_EQ(s.replicas, 2);
  EXPECT_EQ(s.replicas_timeout, 300ms);
  EXPECT_EQ(parse({"run", "x", "true"}).replicas, 0);
}

// `--prefix $P -n` with an empty P: taken as it stands it would lock names that nobody else has.
TEST(options, one_in_the_place_of_a_text_is_refused) {
  for (const std::string taker : {"--prefix", "--owner", "--why", "-c", "--cacert"}) {
    EXPECT_THROW(parse({"run", taker, "-n", "x", "true"}), usage_error) << taker;
    EXPECT_THROW(parse({"run", taker, "--json", "x", "true"}), usage_error) << taker;
  }
  EXPECT_THROW(parse({"lab", "single", "--directory", "--persistent"}), usage_error);
  EXPECT_EQ(parse({"run", "--why", "- at night", "x", "true"}).why, "- at night");
}

TEST(options, time_for_no_replicas_is_refused) {
  EXPECT_THROW(parse({"run", "--replicas-timeout", "1s", "x", "true"}), usage_error);
}

TEST(options, letters_may_stand_together) {
  const auto s = parse({"run", "-nqt3s", "x", "true"});
  EXPECT_TRUE(s.try_once && s.quiet);
  EXPECT_EQ(s.ttl, 3s);
}

TEST(options, of_the_other_commands_may_stand_after_their_name) {
  EXPECT_TRUE(parse({"show", "x", "--json"}).json);
  EXPECT_EQ(parse({"ls", "job:*", "--json"}).name, "job:*");
  EXPECT_TRUE(parse({"break", "x", "--now", "--token", "17"}).now);
  EXPECT_THAT(parse({"local", "status", "--json", "/d"}).words, ElementsAre("status", "/d"));
}

TEST(options, of_lab_stand_anywhere_among_its_words) {
  const auto s = parse({"lab", "--persistent", "quorum", "--directory", "/d", "5", "--ready-within", "2s", "--json"});
  EXPECT_THAT(s.words, ElementsAre("quorum", "5"));
  EXPECT_TRUE(s.persistent && s.json);
  EXPECT_EQ(s.directory, "/d");
  EXPECT_EQ(s.ready_within, 2s);
  EXPECT_TRUE(s.name.empty());
}

TEST(options, help_is_given_without_a_name) { EXPECT_TRUE(parse({"run", "--help"}).wants_help); }

// H78: /proc/PID/cmdline is everybody's to read.
TEST(options, password_in_a_uri_argument_is_blotted_out) {
  command_line line{{"run", "-u", "redis://:canary@h", "x", "true"}};
  const auto s = line.parse();
  EXPECT_EQ(s.uri, "redis://:canary@h");
  EXPECT_EQ(s.password_in_arguments, "--uri");
  EXPECT_EQ(line.words[2], "redis://:******@h");
}

TEST(options, password_behind_an_equals_sign_is_blotted_out) {
  command_line line{{"run", "--uri=redis://me:canary@h", "x", "true"}};
  line.parse();
  EXPECT_EQ(line.words[1], "--uri=redis://me:******@h");
}

TEST(options, password_where_a_port_belongs_is_blotted_out_of_a_uri_argument) {
  command_line line{{"run", "-u", "redis://default:canary", "x", "true"}};
  EXPECT_EQ(line.parse().password_in_arguments, "--uri");
  EXPECT_EQ(line.words[2], "redis://default:******");
}

// H78: and so is what a job has logged.
TEST(options, password_glued_to_what_is_no_option_is_not_in_the_complaint) {
  for (const auto& typed : {std::vector<std::string>{"run", "x", "-Uredis://me:canary@h", "true"},
                            std::vector<std::string>{"run", "-Uredis://me:canary@h", "x", "true"},
                            std::vector<std::string>{"run", "x", "-yredis://default:canary"},
                            std::vector<std::string>{"ls", "--json=redis://:canary@h"},
                            std::vector<std::string>{"ls", "--jsn=redis://:canary@h"}}) {
    const auto said = complaint(typed);
    EXPECT_THAT(said, Not(HasSubstr("canary")));
    EXPECT_THAT(said, HasSubstr("\n"));
  }
  EXPECT_THAT(complaint({"run", "x", "-Uredis://me:canary@h"}), HasSubstr("'-Uredis://h' looks like an option"));
}

// Behind -t in place of -u, say.
TEST(options, password_in_the_place_of_another_value_is_not_in_the_complaint) {
  for (const char* option : {"-t", "-w", "-E", "-l", "-k", "--min-fence", "--signal", "--on-lost", "--replicas"}) {
    const auto said = complaint({"run", option, "redis://me:canary@h", "x", "true"});
    EXPECT_THAT(said, HasSubstr("'redis://h'"));
    EXPECT_THAT(said, Not(HasSubstr("canary")));
  }
}

struct mistake {
  std::vector<std::string> typed;
  const char* said;
};

class options_mistakes : public testing::TestWithParam<mistake> {};

TEST_P(options_mistakes, are_named_with_a_way_out) {
  EXPECT_THAT(complaint(GetParam().typed), HasSubstr(GetParam().said));
}

INSTANTIATE_TEST_SUITE_P(
    all, options_mistakes,
    testing::Values(
        mistake{{"rum"}, "unknown command 'rum' \u2014 did you mean 'run'?"},
        mistake{{"top"}, "'top' is not there yet; a later release brings it\nholdfast help"},
        mistake{{"completion"}, "'completion' is not there yet"},
        mistake{{"run", "--tll", "3s", "x", "true"}, "unknown option '--tll' \u2014 did you mean '--ttl'?"},
        mistake{{"run", "--own", "me", "x", "true"}, "write --owner"},
        mistake{{"run", "--own=me", "x", "true"}, "write --owner"},
        mistake{{"run", "x", "-y"}, "command '-y' looks like an option\nput options before NAME, or add --"},
        mistake{{"run", "x", "--ytterbium"}, "put -- before it"},
        mistake{{"run", "-y", "x", "true"}, "'run' has no option '-y'"},
        mistake{{"run", "x", "-t"}, "'-t' needs a value"}, mistake{{"run", "--ttl"}, "'--ttl' needs a value"},
        mistake{{"run", "--nonblock=1", "x", "true"}, "'--nonblock=1' takes no value"},
        mistake{{"run", "--ttl", "soon", "x", "true"}, "--ttl: 'soon' is not a duration"},
        mistake{{"run", "-w", "-1", "x", "true"}, "'-1' is negative"},
        mistake{{"run", "-E", "256", "x", "true"}, "'256' is not a whole number from 0 to 255"},
        mistake{{"run", "-E", "1x", "x", "true"}, "'1x' is not a whole number"},
        mistake{{"run", "-s", "-x", "x", "true"}, "-x, -s and -l exclude each other"},
        mistake{{"run", "-l", "3", "-s", "x", "true"}, "-x, -s and -l exclude each other\nleave all but one out"},
        mistake{{"run", "-l", "0", "x", "true"}, "0 would let nobody in"},
        mistake{{"run", "-l", "1000001", "x", "true"}, "not a whole number from 1 to 1000000"},
        mistake{{"run", "-w", "--", "x", "true"}, "--wait needs a value, and '--' stands in its place\nwas a variable"},
        mistake{{"run", "-l", "-n", "x", "true"}, "--limit needs a value, and '-n' stands in its place"},
        mistake{{"run", "-w", "-.5", "x", "true"}, "'-.5' is negative"},
        mistake{{"run", "x", "--unlock"}, "is ended with holdfast break"},
        mistake{{"break", "--unlock", "x"}, "a lock ends with its command\nleave it out"},
        mistake{{"quorum", "replace", "--with", "b"}, "this one has no scheme\nredis+quorum://A,B,C"},
        mistake{{"quorum", "replace", "--with", "/b"},
                "a path is no server, and a lock needs no file: its name is any "
                "word\nredis+quorum://A,B,C"},
        mistake{{"run", "--replicas-timeout", "1s", "x", "true"},
                "without --replicas\n--replicas 1, say; or leave it out"},
        mistake{{"run", "-u", "/var/lock/x"}, "a path is no server"},
        mistake{{"run", "-u", "9"}, "flock's -u is holdfast break"}, mistake{{"wait"}, "wait needs a lock's name"},
        mistake{{"run", "-F", "x", "true"}, "-F cannot be had"},
        mistake{{"run", "--signal", "WINCH", "x", "true"}, "'WINCH' is not a signal that ends a command"},
        mistake{{"run", "--on-lost", "pray", "x", "true"}, "'pray' is none of term, kill, warn"},
        mistake{{"run"}, "run needs a lock's name"}, mistake{{"run", "x"}, "run needs a command"},
        mistake{{"run", "", "true"}, "the lock's name is empty"},
        mistake{{"run", "x", "--", "setsid", "job"}, "setsid would fork here"},
        mistake{{"run", "x", "--", "/usr/bin/setsid", "-c", "job", "-f"}, "setsid would fork here"},
        mistake{{"run", "x", "--", "setsid", "--", "job"}, "setsid would fork here"},
        mistake{{"run", "x", "--", "nohup", "setsid", "job"}, "setsid would fork here"},
        mistake{{"run", "x", "--", "env", "A=1", "nice", "-n", "10", "setsid", "job"}, "setsid would fork here"},
        mistake{{"run", "x", "-c", "setsid job 'with words'"}, "setsid would fork here"},
        mistake{{"run", "--foreground", "--wait-group", "x", "true"},
                "--foreground and --wait-group exclude each other"},
        mistake{{"run", "x", "-c", "a", "b"}, "both -c and a command"},
        mistake{{"run", "--min-fence", "seven", "x", "true"}, "--min-fence: 'seven' is not a token"},
        mistake{{"run", "--min-fence", "0", "x", "true"}, "--min-fence: '0' is not a token"},
        mistake{{"run", "--min-fence", "9995614741884719", "x", "true"}, "a number from 1 to 9007199254740990"},
        mistake{{"run", "-t", "10s", "--max-hold", "9s", "x", "true"}, "--max-hold 9s is shorter than --ttl 10s"},
        mistake{{"run", "-t", "10s", "-k", "5s", "x", "true"}, "--kill-after 5s is half of --ttl 10s or more"},
        mistake{{"hold", "x", "true"}, "'true' is one word too many"}, mistake{{"show", "a", "b"}, "one word too many"},
        mistake{{"hold", "-k", "1s", "x"}, "'hold' has no option '-k'"}, mistake{{"break", "x"}, "break needs --token"},
        mistake{{"doctor", "x"}, "one word too many"}));

// A terminal would obey them; shown, they would name another lock to whoever copies the way out
// (fuzz/corpus/command_line/control_bytes).
TEST(options, control_bytes_of_a_name_are_in_no_complaint) {
  for (const std::string which : {"break", "run"}) {
    const auto text = complaint({which, "\x1b[31m"});
    EXPECT_EQ(text.find('\x1b'), text.npos) << text;
    EXPECT_THAT(text, HasSubstr("holdfast " + std::string{which == "break" ? "show NAME" : "run NAME"}));
  }
}

TEST(options, setsid_that_stays_or_is_to_leave_is_no_mistake) {
  const std::vector<std::string> run{"run", "x", "--"};
  for (const std::vector<std::string>& command : {std::vector<std::string>{"setsid", "-w", "job"},
                                                  {"setsid", "-cw", "job"},
                                                  {"setsid", "--wait", "job"},
                                                  {"setsid", "-f", "job"},
                                                  {"setsid", "--help"},
                                                  {"timeout", "5", "setsid", "job"},
                                                  {"echo", "setsid"},
                                                  {"env"}}) {
    auto typed = run;
    typed.insert(typed.end(), command.begin(), command.end());
    EXPECT_EQ(complaint(typed), "no complaint") << command[1 % command.size()];
  }
  EXPECT_EQ(complaint({"run", "--foreground", "x", "--", "setsid", "job"}), "no complaint");
  EXPECT_EQ(complaint({"run", "x", "-c", "setsid job; true"}), "no complaint");  // The shell stays.
}

// Of 60 s, 602 ms are the drift's and 3 s the lead of the loss; 100 ms may pass until the command is there.
TEST(options, at_least_is_refused_beyond_the_end_of_what_is_not_renewed) {
  const auto of = [](const char* at_least, const std::vector<std::string>& rest) {
    std::vector<std::string> typed{"run", "--ttl", "60s", "--at-least", at_least};
    typed.insert(typed.end(), rest.begin(), rest.end());
    for (const auto* word : {"x", "true"}) typed.emplace_back(word);
    return complaint(typed);
  };
  EXPECT_EQ(of("56298ms", {"--no-renew"}), "no complaint");
  EXPECT_EQ(of("56299ms", {"--no-renew"}),
            "--at-least 56.2s cannot be kept: with --no-renew and --ttl 1m00s the lock is given up after 56.2s\n"
            "leave --no-renew out, or a longer --ttl, or --at-least 56.2s at most");
  EXPECT_EQ(of("56900ms", {"--max-hold", "60s"}), "no complaint");
  EXPECT_EQ(of("56901ms", {"--max-hold", "60s"}),
            "--at-least 56.9s cannot be kept: with --max-hold 1m00s the lock is given up after 56.9s\n"
            "a longer --max-hold, or --at-least 56.9s at most");
  EXPECT_EQ(of("1h", {}), "no complaint");
  EXPECT_EQ(complaint({"run", "--no-renew", "--ttl", "100ms", "--at-least", "0", "x", "true"}), "no complaint");
}

TEST(options, default_kill_after_is_no_mistake_with_a_short_ttl) {
  EXPECT_EQ(complaint({"run", "-t", "3s", "x", "true"}), "no complaint");
}

TEST(option_table, has_no_letter_and_no_name_twice_for_one_command) {
  for (const auto& command : command_table()) {
    std::multiset<std::string> spellings;
    for (const auto& row : option_table()) {
      if ((row.commands & static_cast<unsigned>(command.id)) == 0) continue;
      if (row.letter) spellings.insert(std::string{"-"} + row.letter);
      if (row.name) spellings.insert(row.name);
    }
    for (const auto& spelling : spellings) EXPECT_EQ(spellings.count(spelling), 1U) << command.name << ' ' << spelling;
  }
}

}  // namespace
