#pragma once
// Names of threads, which gdb (`info threads`), top and /proc show: "rank 2", "rank 2 stream". A
// thread that is started has its starter's name until it gets one of its own.
#include <pthread.h>

#include <string>

namespace ddp {

inline std::string thread_name() {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    return name;
}

// Names the calling thread. Linux keeps fifteen letters of it.
inline void name_thread(const std::string& name) {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

// Adds what the calling thread does to its starter's name: "rank 2" becomes "rank 2 stream".
inline void name_thread_by_role(const std::string& role) {
    name_thread(thread_name() + " " + role);
}

// Names the calling thread until this object's end.
class ThreadName {
  public:
    explicit ThreadName(const std::string& name) : before_(thread_name()) { name_thread(name); }
    ~ThreadName() { name_thread(before_); }
    ThreadName(const ThreadName&) = delete;
    ThreadName& operator=(const ThreadName&) = delete;

  private:
    std::string before_;
};

}  // namespace ddp
