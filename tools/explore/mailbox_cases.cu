// The server of 13_async and its workers: who comes first is served first.
#include "06_messages/support/copy.cuh"
#include "13_async/mailboxes.cuh"
#include "tools/explore/cases.hpp"

namespace ddp {
namespace {

constexpr int mail_of_worker = 2;
constexpr std::size_t message_floats = 4;

// Takes all messages, in the order of the mailboxes that it finds full. It does what find_mail and
// receive_kernel do one after the other, with the host between them. Each message has its place.
__global__ void take_mail(const __grid_constant__ PeersView view,
                          const __grid_constant__ OperationRecord record, int workers,
                          std::byte* to) {
    constexpr std::size_t bytes = message_floats * sizeof(float);
    int taken[max_peers] = {};
    int first = 1;
    if (!begin_operation(view, record))
        return;
    for (int mail = 0; mail < mail_of_worker * workers; mail++) {
        int worker = 0;
        const auto is_one_full = [&] {
            worker = full_mailbox(view, workers, first);
            return worker != 0;
        };
        if (!wait_or_blame(view, record, is_one_full, [first] { return first; }))
            return;
        first = 1 + worker % workers;
        const int number = ++taken[worker];
        Channel& channel = view.own().from[worker];
        if (!wait_until(view, record, worker, channel.posted, static_cast<std::uint64_t>(number)))
            return;
        const auto place = static_cast<std::size_t>((worker - 1) * mail_of_worker + number - 1);
        copy_bytes(to + place * bytes, view.data_of(worker, channel.record), bytes);
        store_release(view.control[worker]->acknowledged[view.rank],
                      static_cast<std::uint64_t>(number));
    }
    end_operation(view);
}

void send_to_server(Peers& peers, const float* input, float* output, std::size_t, Stream& stream) {
    const int workers = peers.rank().world_size() - 1;
    if (peers.rank().rank() == 0)
        launch(stream, {1, 1}, take_mail, peers.view(),
               peers.next_record({.operation = "take mail"}), workers,
               reinterpret_cast<std::byte*>(output));
    else
        for (std::size_t i = 0; i < mail_of_worker; i++)
            peers.send(input + i * message_floats, message_floats, 0, stream);
}

// Returns the messages of all workers, one behind the other, for the server.
std::vector<float> mail_of_all(int rank, const std::vector<std::vector<float>>& numbers) {
    std::vector<float> mail(numbers[0].size(), overwritten);
    if (rank == 0)
        for (std::size_t worker = 1; worker < numbers.size(); worker++)
            std::copy_n(numbers[worker].begin(), mail_of_worker * message_floats,
                        mail.begin() + static_cast<std::ptrdiff_t>((worker - 1) * mail_of_worker *
                                                                   message_floats));
    return mail;
}

}  // namespace

std::vector<ExploredCase> mailbox_cases() {
    std::vector<ExploredCase> cases;
    for (const int workers : {1, 2})
        cases.push_back({"mailboxes", 1 + workers, 1,
                         static_cast<std::size_t>(workers) * mail_of_worker * message_floats,
                         "2 messages", send_to_server, mail_of_all});
    return cases;
}

}  // namespace ddp
