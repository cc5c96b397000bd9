// SPDX-License-Identifier: Apache-2.0
#include "support/tls_material.hpp"

#include "support/scratch_directory.hpp"

#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace holdfast::test {
namespace {

void run(const std::string& directory, const std::string& command) {
  const auto line = "cd '" + directory + "' && " + command + " >>openssl.log 2>&1";
  if (std::system(line.c_str()) != 0) throw std::runtime_error("this failed: " + line);
}

std::string names_of(certificate kind) {
  switch (kind) {
    case certificate::wrong_host: return "DNS:elsewhere.test";
    case certificate::name_only: return "DNS:localhost";
    default: return "DNS:localhost,IP:127.0.0.1";
  }
}

void make(const std::string& directory, certificate kind) {
  std::ofstream{directory + "/san.txt"} << "subjectAltName=" << names_of(kind) << "\n";
  run(directory,
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj '/CN=holdfast test "
      "authority' -keyout ca.key -out ca.pem");
  for (const std::string who : {"tls", "client"}) {
    run(directory, "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj '/CN=" + who +
                       "' -keyout " + who + ".key -out " + who + ".csr");
    // -days -1 makes one that ended yesterday.
    run(directory, "openssl x509 -req -in " + who +
                       ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile san.txt -days " +
                       (kind == certificate::expired && who == "tls" ? "-1" : "2") + " -out " + who + ".pem");
  }
}

}  // namespace

const std::string& tls_material(certificate kind) {
  static std::array<std::unique_ptr<scratch_directory>, 4> made;
  auto& one = made.at(static_cast<std::size_t>(kind));
  if (!one) {
    one = std::make_unique<scratch_directory>();
    make(one->path(), kind);
  }
  return one->path();
}

}  // namespace holdfast::test
