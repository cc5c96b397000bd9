// SPDX-License-Identifier: Apache-2.0
// plug_in_host PLUG_IN.so: loads it, has it use its lock, and unloads it, again and again.
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: plug_in_host PLUG_IN.so\n", stderr), 64;
  for (int i = 0; i < 200; ++i) {
    void* plug_in = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (plug_in == nullptr) return std::fprintf(stderr, "plug_in_host: %s\n", dlerror()), 1;
    const auto use_lock = reinterpret_cast<bool (*)()>(dlsym(plug_in, "use_lock"));
    if (!use_lock()) return std::fputs("plug_in_host: the plug-in has not had its lock\n", stderr), 1;
    dlclose(plug_in);
    // A plug-in that stays loaded would show nothing.
    if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != nullptr) return std::fputs("plug_in_host: it stays\n", stderr), 1;
  }
}
