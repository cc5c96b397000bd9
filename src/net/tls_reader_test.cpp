// SPDX-License-Identifier: Apache-2.0
#include "net/tls_reader.hpp"

#include "net/clock.hpp"
#include "net/tls_session.hpp"
#include "support/scratch_directory.hpp"
#include "support/tls_material.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

namespace holdfast::net {
namespace {

using testing::HasSubstr;

TEST(tls_files, that_cannot_be_read_are_named) {
  const auto of_authorities = read_now({.cacert = "/no/such/authorities.pem", .cert = "", .key = ""});
  EXPECT_EQ(of_authorities.context, nullptr);
  EXPECT_THAT(of_authorities.failure, HasSubstr("'/no/such/authorities.pem'"));
  const auto of_ours = read_now({.cacert = "", .cert = "/no/such/me.pem", .key = ""});
  EXPECT_EQ(of_ours.context, nullptr);
  EXPECT_THAT(of_ours.failure, HasSubstr("'/no/such/me.pem'"));
}

// The calling thread may have a session of its own, which OpenSSL calls broken by what it finds there.
TEST(tls_files, leave_no_errors_to_who_reads_them) {
  const auto& material = test::tls_material(test::certificate::good);
  for (const tls_files& files : {tls_files{.cacert = "/no/such/authorities.pem", .cert = "", .key = ""},
                                 tls_files{.cacert = material + "/client.key", .cert = "", .key = ""},
                                 tls_files{.cacert = "", .cert = "/no/such/me.pem", .key = ""},
                                 tls_files{.cacert = "", .cert = material + "/client.key", .key = ""}}) {
    const auto came_to = read_now(files);
    EXPECT_EQ(came_to.context, nullptr);
    EXPECT_EQ(ERR_peek_error(), 0U) << came_to.failure;
  }
}

// OpenSSL would ask for its pass phrase on the terminal, of whichever thread reads them.
TEST(tls_files, ask_nobody_for_a_pass_phrase) {
  const auto& material = test::tls_material(test::certificate::good);
  const test::scratch_directory place;
  const auto key = place / "encrypted.key";
  for (const auto* how : {"pkcs8 -topk8 -v2 aes-256-cbc", "ec -aes128"}) {
    const auto make = std::string{"openssl "} + how + " -passout pass:secret -in '" + material + "/client.key' -out '" +
                      key + "' 2>/dev/null";
    ASSERT_EQ(std::system(make.c_str()), 0) << make;
    const auto came_to = read_now({.cacert = "", .cert = material + "/client.pem", .key = key});
    EXPECT_EQ(came_to.context, nullptr);
    EXPECT_THAT(came_to.failure, HasSubstr("'" + key + "'"));
    EXPECT_THAT(came_to.failure, HasSubstr("is encrypted"));
  }
}

TEST(tls_files, may_have_the_key_in_that_of_the_certificate) {
  const auto& material = test::tls_material(test::certificate::good);
  const test::scratch_directory place;
  const auto both = place / "both.pem";
  const auto make = "cat '" + material + "/client.pem' '" + material + "/client.key' >'" + both + "'";
  ASSERT_EQ(std::system(make.c_str()), 0) << make;
  const auto came_to = read_now({.cacert = material + "/ca.pem", .cert = both, .key = ""});
  EXPECT_NE(came_to.context, nullptr) << came_to.failure;
}

// One file that does not come to an end until the test says so, as of a file system that is away.
class tls_reader_test : public testing::Test {
protected:
  tls_reader_test() { EXPECT_EQ(::mkfifo(fifo_.c_str(), 0600), 0); }

  // Returns when it is read. As long as the descriptor is open, it is read on.
  int be_read() const { return ::open(fifo_.c_str(), O_WRONLY | O_CLOEXEC); }
  static bool is_answered(const tls_reader& one, int milliseconds = 10'000) {
    pollfd wanted{one.wake_fd(), POLLIN, 0};
    return ::poll(&wanted, 1, milliseconds) == 1;
  }
  // Also where another one reads it, too.
  bool comes_to_its_end(const tls_reader& one) const {
    for (int i = 0; i < 10'000 && !is_answered(one, 1); ++i) ::close(::open(fifo_.c_str(), O_RDWR | O_CLOEXEC));
    return is_answered(one, 0);
  }

  test::scratch_directory place_;
  const std::string fifo_ = place_ / "ca.pem";
  const tls_files files_{.cacert = fifo_, .cert = "", .key = ""};
};

TEST_F(tls_reader_test, says_what_it_waits_for) {
  tls_reader one{files_, boottime_now()};
  const int file = be_read();
  EXPECT_EQ(one.at(), "cannot read authorities from '" + fifo_ + "'");
  EXPECT_FALSE(one.take());
  EXPECT_FALSE(is_answered(one, 0));
  ::close(file);
  ASSERT_TRUE(is_answered(one));
  const auto answer = one.take();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->context, nullptr) << "of an empty file";
  EXPECT_THAT(answer->failure, HasSubstr("'" + fifo_ + "'"));
}

// A program that another thread starts meanwhile would have it, also one that may not read the file.
TEST_F(tls_reader_test, leaves_no_key_to_a_program_that_is_started_while_it_reads) {
  const auto& material = test::tls_material(test::certificate::good);
  for (const tls_files& files : {tls_files{.cacert = "", .cert = fifo_, .key = ""},
                                 tls_files{.cacert = "", .cert = material + "/client.pem", .key = fifo_}}) {
    const tls_reader one{files, boottime_now()};
    const int file = be_read();
    int seen = 0;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
      std::error_code gone;
      const int fd = std::stoi(entry.path().filename());
      if (fd == file || std::filesystem::read_symlink(entry.path(), gone) != fifo_) continue;
      ++seen;
      EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC) << one.at();
    }
    EXPECT_EQ(seen, 1) << one.at();
    ::close(file);
    EXPECT_TRUE(is_answered(one));
  }
}

// A mount that was replaced while a file of it was read: that reading never ends. And there must not be a thread more
// with each minute of an outage.
TEST_F(tls_reader_test, is_given_up_for_another_one_after_ever_longer_times) {
  const auto t0 = boottime_now();
  tls_reader first{files_, t0};
  EXPECT_TRUE(first.is_good_for(t0 + tls_reader::first_patience - std::chrono::seconds{1}));
  EXPECT_FALSE(first.is_good_for(t0 + tls_reader::first_patience));
  tls_reader second{files_, t0, &first};
  EXPECT_TRUE(second.is_good_for(t0 + tls_reader::first_patience));
  EXPECT_FALSE(second.is_good_for(t0 + 2 * tls_reader::first_patience));
  EXPECT_TRUE(comes_to_its_end(first));
  EXPECT_TRUE(comes_to_its_end(second));
  EXPECT_FALSE(second.is_good_for(t0)) << "it was an empty file, and may be another by now";
  tls_reader third{files_, t0, &second};
  EXPECT_FALSE(third.is_good_for(t0 + tls_reader::first_patience));
  EXPECT_TRUE(comes_to_its_end(third));
}

// Else who waits for less long than it takes reads them again and again, and never has them.
TEST_F(tls_reader_test, that_has_come_to_an_end_is_good_for_a_while) {
  const auto& material = test::tls_material(test::certificate::good);
  const tls_reader one{{.cacert = material + "/ca.pem", .cert = "", .key = ""}, boottime_now()};
  ASSERT_TRUE(is_answered(one));
  const auto now = boottime_now();
  EXPECT_TRUE(one.is_good_for(now + tls_reader::answer_lasts - std::chrono::seconds{1}));
  EXPECT_FALSE(one.is_too_old(now));
  EXPECT_FALSE(one.is_good_for(now + tls_reader::answer_lasts + std::chrono::seconds{1}));
  EXPECT_TRUE(one.is_too_old(now + tls_reader::answer_lasts + std::chrono::seconds{1}));
}

// Where the program has begun OpenSSL, that ends itself with exit(), and whoever reads would find it gone.
TEST_F(tls_reader_test, is_waited_for_by_the_end_of_openssl) {
  static int file = -1;
  static std::thread slow;
  const auto end_while_it_reads = [&] {
    OPENSSL_init_crypto(0, nullptr);
    tls_session::keep_openssl();  // As who makes a client. It does not help any more.
    tls_reader one{files_, boottime_now()};
    file = be_read();
    OPENSSL_atexit([] {  // The last of them comes first.
      slow = std::thread{[] {
        ::poll(nullptr, 0, 100);
        ::close(file);
      }};
    });
    OPENSSL_cleanup();
    const bool has_ended = one.take().has_value();
    slow.join();
    std::filesystem::remove_all(place_.path());
    ::_exit(has_ended ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // In a program of its own, whose OpenSSL nobody else needs.
  EXPECT_EXIT(end_while_it_reads(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace holdfast::net
