// Ranks that torchrun starts, beside a store that is played here: it takes PyTorch's bytes one by
// one, and nothing else. (torchrun_test.py has a real one.)
#include "05_ranks/agent_store.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <map>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

class PlayedStore {
  public:
    PlayedStore() : listener_(listen_at("127.0.0.1", 0)), thread_([this] { accept_clients(); }) {}
    ~PlayedStore() {
        {
            std::lock_guard lock(mutex_);
            ends_ = true;
        }
        changed_.notify_all();
        thread_.join();
        clients_.clear();  // each thread waits for its client to go
    }
    std::uint16_t port() const { return port_of(listener_); }
    std::map<std::string, std::string> values() {
        std::lock_guard lock(mutex_);
        return values_;
    }
    std::vector<std::string> errors() {
        std::lock_guard lock(mutex_);
        return errors_;
    }

  private:
    void accept_clients() {
        for (;;) {
            pollfd ready{listener_.number(), POLLIN, 0};
            poll(&ready, 1, 10);
            {
                std::lock_guard lock(mutex_);
                if (ends_)
                    return;
            }
            Descriptor client(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
            if (client.number() >= 0)
                clients_.emplace_back(
                    [this, client = std::move(client)] { serve(client.number()); });
        }
    }
    // Returns the next `count` bytes of a client, or fewer if it has gone.
    static std::string read(int client, std::size_t count) {
        std::string bytes(count, '\0');
        const ssize_t got = recv(client, bytes.data(), count, MSG_WAITALL);
        bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        return bytes;
    }
    static std::uint64_t read_number(int client) {
        std::uint64_t number = 0;
        const std::string bytes = read(client, sizeof number);
        std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&number));
        return number;
    }
    static std::string read_text(int client) { return read(client, read_number(client)); }

    void serve(int client) {
        if (read(client, 5) != std::string("\0\xCE\xF7\x85\x3C", 5))
            return complain("a client does not begin with VALIDATE");
        for (std::string request; !(request = read(client, 1)).empty();) {
            std::unique_lock lock(mutex_, std::defer_lock);
            if (request == "\1") {
                const std::string key = read_text(client), value = read_text(client);
                lock.lock();
                values_[key] = value;
                changed_.notify_all();
            } else if (request == "\3") {
                const std::string key = read_text(client);
                lock.lock();
                if (!values_.contains(key))
                    errors_.push_back("GET of a key that is not there");
                const std::uint64_t count = values_[key].size();
                std::string answer(reinterpret_cast<const char*>(&count), sizeof count);
                answer += values_[key];
                for (const char byte : answer)  // one by one: they come as they come
                    send(client, &byte, 1, MSG_NOSIGNAL);
            } else if (request == "\6" && read_number(client) == 1) {
                const std::string key = read_text(client);
                lock.lock();
                changed_.wait(lock, [&] { return values_.contains(key) || ends_; });
                send(client, "", 1, MSG_NOSIGNAL);
            } else {
                return complain("a request that is none of SET, GET and WAIT for one key");
            }
        }
    }
    void complain(const std::string& error) {
        std::lock_guard lock(mutex_);
        errors_.push_back(error);
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::string> values_;
    std::vector<std::string> errors_;
    bool ends_ = false;
    Descriptor listener_;
    std::vector<std::jthread> clients_;
    std::thread thread_;
};

std::string error_of(const std::function<void()>& work) {
    try {
        work();
        return "";
    } catch (const std::exception& error) {
        return error.what();
    }
}

TEST_CASE("the agent's store keeps what one rank sets for the others") {
    PlayedStore played;
    std::future<std::string> waits = std::async(
        std::launch::async, [&] { return AgentStore("127.0.0.1", played.port(), 20).get("key"); });
    AgentStore store("127.0.0.1", played.port(), 20);
    const std::string value("7\0\n and more", 12);
    store.set("key", value);
    REQUIRE(waits.get() == value);
    REQUIRE(store.get("key") == value);
    store.set("key", "another");
    REQUIRE(store.get("key") == "another");
    REQUIRE(played.errors().empty());
}

TEST_CASE("a store that is silent, gone or something else gets a sentence") {
    std::string name;
    {
        PlayedStore played;
        name = "torchrun's store at 127.0.0.1:" + std::to_string(played.port());
        REQUIRE(error_of([&] { AgentStore("127.0.0.1", played.port(), 0.1).get("word"); }) ==
                name + " had no word for 0.1 s: was rank 0 started?");
    }
    const Descriptor listener = listen_at("127.0.0.1", 0);
    name = "torchrun's store at 127.0.0.1:" + std::to_string(port_of(listener));
    const auto serves = [&](const std::function<void(int client)>& work) {
        return std::jthread([&listener, work] {
            pollfd ready{listener.number(), POLLIN, 0};
            poll(&ready, 1, 20'000);
            const Descriptor client(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
            work(client.number());
            for (char bytes[64]; recv(client.number(), bytes, sizeof bytes, 0) > 0;) {
            }
        });
    };
    const auto error = [&] {
        return error_of([&] { AgentStore("127.0.0.1", port_of(listener), 20).get("word"); });
    };
    {  // another program: it answers whatever it is asked
        const std::jthread other = serves(
            [](int client) { send(client, "220 welcome to this server", 26, MSG_NOSIGNAL); });
        REQUIRE(error() ==
                name + " does not speak as PyTorch's TCPStore does: what listens there?");
    }
    {
        const std::jthread closes = serves([](int client) {
            char bytes[5];
            REQUIRE(recv(client, bytes, 5, MSG_WAITALL) == 5);
            shutdown(client, SHUT_WR);
        });
        REQUIRE(error().starts_with(name + " has closed the connection"));
    }
    const std::uint16_t free_port = port_of(listen_at("127.0.0.1", 0));
    REQUIRE(error_of([&] {
                AgentStore("127.0.0.1", free_port, 0.1);
            }).ends_with(" cannot be reached: is the agent of that node gone?"));
}

TEST_CASE("ranks that torchrun has started meet where its store says, in every attempt") {
    PlayedStore played;
    for (const char* attempt : {"0", "1"}) {
        std::vector<std::future<ChildResult>> ranks;
        for (const char* rank : {"1", "2", "0"})
            ranks.push_back(std::async(std::launch::async, [&played, rank, attempt] {
                return run_command(
                    {RANKS_PROGRAM, "--quick"},
                    {"RANK=" + std::string(rank), "WORLD_SIZE=3", "MASTER_ADDR=localhost",
                     "MASTER_PORT=" + std::to_string(played.port()),
                     "TORCHELASTIC_USE_AGENT_STORE=True", "TORCHELASTIC_RUN_ID=job",
                     "TORCHELASTIC_RESTART_COUNT=" + std::string(attempt)});
            }));
        REQUIRE(ranks[0].get().output == "");
        REQUIRE(ranks[1].get().output == "");
        const ChildResult rank_0 = ranks[2].get();
        CAPTURE(rank_0.output);
        REQUIRE(rank_0.exit_code == 0);
        REQUIRE(count(rank_0.output, "Who is who (started by: torchrun)\n") == 1);
        REQUIRE(count(rank_0.output, "all 3 ranks have met") == 1);
    }
    const std::map<std::string, std::string> values = played.values();
    REQUIRE(values.size() == 2);
    REQUIRE(values.at("ddp_by_hand/job/attempt_0/rank_0") !=
            values.at("ddp_by_hand/job/attempt_1/rank_0"));
    REQUIRE(played.errors().empty());
}

}  // namespace
}  // namespace ddp::test
