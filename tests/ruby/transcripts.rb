# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# Plays the transcripts of tests/protocol without I/O, with the package in the folder
# $PACKAGE; docs/client-authors.md says what is in them. Ends with "N passed, N
# failed".

require "json"
require "logger"

ROOT = File.expand_path("../..", __dir__)
%w[errors clock answer grant wanted replicas talk held_lock coalescer].each do |name|
  require "#{ENV['PACKAGE'] || "#{ROOT}/api/clients/ruby"}/lib/redlockd/#{name}"
end

def expect(is_it, what)
  raise what.to_s unless is_it
end

# A logger that keeps the last warning.
class Warnings
  attr_reader :last

  def warn(text)
    @last = text
  end

  def info(_text); end
end

# A talk, and what it wants now.
class Running
  attr_reader :now, :result, :error
  attr_accessor :is_over, # and the transcript knows
                :asked, :url, :sent_ms

  def initialize(&talk)
    @fiber = Fiber.new do
      @result = talk.call(->(step) { Fiber.yield(step) })
      nil
    rescue StandardError => e # which the transcript names
      @error = e
      nil
    end
    send(nil)
  end

  def send(answer)
    @now = @fiber.resume(answer)
  end
end

# Plays one transcript.
class Player
  include Redlockd

  # what a step may have beside its first word
  STEPS = {
    "send" => %w[of server headers body timeout_ms wait_ms], "again" => %w[of timeout_ms],
    "answer" => %w[of after_ms body grant text retry_after overdue], "pause_ms" => %w[of],
    "end" => nil, "hold" => [], "leave" => %w[of], "cancel" => %w[gives_back], "pass_ms" => [],
    "choose" => %w[probes], "failed" => [], "worked" => [], "probed" => %w[works], "busy" => []
  }.freeze
  # the first that fits: some are subclasses of others
  ERRORS = {
    "held" => LockHeld, "lost" => LockLost, "rate_limited" => RateLimited,
    "unavailable" => Unavailable, "untrusted" => Untrusted, "unauthorized" => Unauthorized,
    "forbidden" => Forbidden, "refused" => RequestRefused
  }.freeze
  MEMBERS = %w[name why servers talk options begins steps].freeze
  FAILURES = { "lost" => Answer::LOST, "unsent" => Answer::UNSENT,
               "untrusted" => Answer::UNTRUSTED }.freeze

  def initialize(transcript, grant)
    expect((transcript.keys - MEMBERS).empty?, "an unknown member")
    @transcript = transcript
    @grant = grant
    @time = 1_000_000.0
    Clock.fake = -> { @time }
    @due = []
    @replicas = Replicas.new(Array.new(transcript["servers"]) { |i| "http://server-#{i}" })
    @replicas.probe = ->(url) { @due << url }
    @warnings = Warnings.new
    @talk = Talk.new(@replicas, 5000.0, @warnings)
    @keys = {}
    @running = {}
    @of = Wanted.new(resources: ["a"])
    @hold = Hold.new(@of, Grant.read(Answer.new(200, grant, sent_ms: @time))) unless grant.empty?
  end

  def play
    @transcript["steps"].each_with_index do |step, number|
      take(step)
    rescue StandardError => e
      raise "step #{number}, #{step.to_json}: #{e.message}"
    end
    @running.each { |name, talk| expect(talk.is_over, "#{name} did not end") }
  end

  private

  def take(step)
    words = step.keys & STEPS.keys
    expect(words.size == 1, "an unknown step")
    others = step.keys - words - (STEPS[words.first] || step.keys)
    expect(others.empty?, "an unknown member: #{others.join(' ')}")
    method("do_#{words.first}").call(step)
  end

  # ---- the talks

  def of(step)
    name = step["of"] || @transcript["talk"]
    if !@running.key?(name) || @running[name].is_over
      @running[name] = Running.new { |yielder| start(name.split.first, &yielder) }
    end
    @running[name]
  end

  def start(kind, &step)
    options = @transcript["options"] || {}
    case kind
    when "acquire"
      @wanted = Wanted.new(**options.transform_keys(&:to_sym))
      @attempt = Attempt.new(@wanted)
      @talk.acquire(@wanted, @attempt, &step)
    when "renew" then renewing(&step)
    when "extend" then @talk.extend(@hold, options["ttl_ms"], &step)
    when "downgrade" then @talk.downgrade(@hold, &step)
    when "release" then @talk.release(@hold, &step)
    when "inspect" then @talk.holder(options["resource"], &step)
    when "watch" then @talk.next_holder(options["resource"], @version, &step)
    when "force" then @talk.force(options["id"], options["fencing_token"], &step)
    else raise "no talk #{kind}"
    end
  end

  # Until each renewal, the lock waits.
  def renewing(&step)
    loop do
      step.call(Pause.new([0, @hold.grant.renew_at_ms - @time].max))
      break unless @talk.extend(@hold, &step)
    end
  end

  # Pauses that are none.
  def skip(talk)
    while talk.now.is_a?(Pause) && talk.now.ms <= 1
      @time += talk.now.ms
      talk.send(nil)
    end
  end

  # ---- the steps

  def do_send(step)
    talk = of(step)
    skip(talk)
    talk.asked = step
    asked = talk.now
    expect(asked.is_a?(Send), "no request: #{asked} #{talk.error.inspect}")
    asked.try_once if @is_busy && asked.scope && !asked.must_wait
    talk.url = @replicas.choose
    talk.sent_ms = @time
    expect("#{asked.http_method} #{asked.path}" == step["send"], asked)
    expect(talk.url == "http://server-#{step['server']}", talk.url)
    expect(asked.body == step["body"], asked.body)
    expect(close?(asked.timeout_ms, step["timeout_ms"] || 5000), asked)
    expect(close?(asked.wait_ms, step["wait_ms"] || 0), asked)
    wanted = step["headers"] || {}
    expect(wanted.keys.sort == asked.headers.keys.sort, asked)
    wanted.each do |name, text|
      text = (@keys[text] ||= asked.headers[name]) if text.start_with?("$")
      expect(text == asked.headers[name], asked)
    end
    expect(@keys.values.uniq.size == @keys.size, @keys)
  end

  def do_again(step)
    more = step.reject { |name, _| name == "again" }
    do_send(of(step).asked.merge("server" => step["again"], **more))
  end

  def do_answer(step)
    @time += step["after_ms"] || 0
    talk = of(step)
    expect(talk.now.is_a?(Send), "nothing was asked")
    @replicas.avoid(talk.url) if step["overdue"]
    if step["answer"] == "stale" # the same request again, at once
      @is_stale = true
      return
    end
    talk.send(answer_of(step, talk))
    @is_stale = false
  end

  def answer_of(step, talk)
    if step["answer"].is_a?(String)
      return Answer.failure(FAILURES.fetch(step["answer"]), "", talk.url, talk.sent_ms,
                            is_repeated: @is_stale)
    end

    body = step["grant"] ? @grant.merge(step["grant"]) : step["body"]
    expect(step["text"] || body, "an answer without a body")
    answer = Answer.read(step["answer"], step["text"] || body.to_json,
                         retry_after: step["retry_after"], url: talk.url, sent_ms: talk.sent_ms,
                         is_repeated: @is_stale)
    @replicas.works(talk.url) if answer.good? && !step["overdue"]
    answer
  end

  def do_pause_ms(step)
    talk = of(step)
    expect(talk.now.is_a?(Pause), "no pause: #{talk.now} #{talk.error.inspect}")
    expect(close?(talk.now.ms, step["pause_ms"]), talk.now)
    @time += talk.now.ms
    talk.send(nil)
  end

  def do_busy(step)
    @is_busy = step["busy"]
  end

  def do_pass_ms(step)
    @time += step["pass_ms"]
  end

  def do_end(step)
    talk = of(step)
    skip(talk)
    expect(talk.now.nil?, "it goes on: #{talk.now}")
    is, says = outcome(talk)
    expect(is == step["end"], "#{is}: #{talk.error.inspect}")
    compare(says, step.reject { |name, _| %w[end of].include?(name) })
    talk.is_over = true
  end

  # How it ended, and what that says.
  def outcome(talk)
    ERRORS.each do |name, kind|
      return [name, members(talk.error)] if talk.error.is_a?(kind)
    end
    raise talk.error if talk.error
    return ["not_released", {}] if @warnings.last.to_s.include?("not released")
    return ["granted", state(Hold.new(@of, talk.result))] if talk.result.is_a?(Grant)

    if %w[inspect watch].include?(@transcript["talk"])
      lock = talk.result
      if @transcript["talk"] == "watch"
        @version = lock["version"]
        lock = nil unless lock["held"]
      end
      return ["free", {}] unless lock

      held = HeldLock.read(lock).to_h.transform_keys(&:to_s)
      held["remaining_ms"] = held["remaining"] && held["remaining"] * 1000
      return ["holder", held]
    end
    [talk.result == false ? "free" : "done", {}]
  end

  def members(error)
    error.instance_variables.each_with_object({}) do |name, is|
      value = error.instance_variable_get(name)
      name = name.to_s.delete("@")
      is[name] = value
      is["#{name}_ms"] = value && value * 1000 if %w[remaining retry_after].include?(name)
    end
  end

  def state(hold)
    { "token" => hold.grant.token, "slots" => hold.slots, "fencing_token" => hold.grant.fencing_token,
      "shared" => hold.grant.is_shared, "work_ms" => hold.remaining_ms,
      "validity_ms" => hold.validity_ms, "renew_ms" => [0, hold.grant.renew_at_ms - @time].max }
  end

  def compare(is, expected)
    expected.each do |name, value|
      expect(is.key?(name), "it has no #{name}")
      is_same = name.end_with?("_ms") && value ? close?(is[name], value) : is[name] == value
      expect(is_same, "#{name} is #{is[name].inspect}")
    end
  end

  def do_hold(step)
    compare(state(@hold), step["hold"])
  end

  def do_leave(step)
    talk = of(step)
    skip(talk)
    expect(talk.now, "it has ended")
    talk.is_over = true
  end

  def do_cancel(step)
    talk = of(step)
    is_open = @attempt.may_be_granted || talk.now.is_a?(Send)
    expect((is_open || false) == step["gives_back"], "gives_back")
    talk.is_over = true
    return unless step["gives_back"]

    @running[@transcript["talk"]] =
      Running.new { |yielder| @talk.give_back(@wanted, @attempt, &yielder) }
  end

  # ---- which replica

  def do_choose(step)
    @due.clear
    expect(@replicas.choose == @replicas.urls[step["choose"]], "another one")
    expect(@due == (step["probes"] || []).map { |one| @replicas.urls[one] }, @due)
  end

  def do_failed(step)
    @replicas.avoid(@replicas.urls[step["failed"]])
  end

  def do_worked(step)
    @replicas.works(@replicas.urls[step["worked"]])
  end

  def do_probed(step)
    talk = Running.new { |yielder| @talk.probe(@replicas.urls[step["probed"]], &yielder) }
    expect(talk.now.path == "/readyz", "no probe")
    talk.send(Answer.new(step["works"] ? 200 : 503, {}))
  end

  # An exact time may be rounded; a range is of times drawn at random.
  def close?(actual, expected)
    least, most = expected.is_a?(Array) ? expected : [expected, expected]
    actual.between?(least - 1, most + 1)
  end
end

# Plays which operations go together.
class Together
  include Redlockd

  STEPS = {
    "ask" => %w[operation wait_ms must_wait urgent more], "leaves" => %w[wait_ms batch],
    "lands" => %w[answer results told stale], "overdue" => [], "gives_up" => []
  }.freeze

  def initialize(transcript, _grant)
    @steps = transcript["steps"]
    @coalescer = Coalescer.new
    @operations = {}
    @under_way = []
    @departing = []
  end

  def play
    @steps.each_with_index do |step, number|
      take(step)
    rescue StandardError => e
      raise "step #{number}, #{step.to_json}: #{e.message}"
    end
    expect(@departing.empty?, "more leaves")
  end

  private

  def take(step)
    word = step.keys.first
    others = step.keys - [word] - STEPS.fetch(word)
    expect(others.empty?, "an unknown member: #{others.join(' ')}")
    expect(word == "leaves" || @departing.empty?, "more leaves")
    method("do_#{word}").call(step)
    return if step["more"]

    while (request = @coalescer.take)
      @departing << request
    end
  end

  def names(request)
    request.operations.map { |operation| @operations.key(operation) }
  end

  def under_way(name)
    @under_way.find { |request| names(request).first == name } or raise "#{name} is not under way"
  end

  def do_ask(step)
    wanted = wanted_of(step["ask"], step["operation"].dup, step["wait_ms"] || 0)
    wanted.must_wait = step["must_wait"]
    wanted.is_urgent = step["urgent"]
    # an item of a batch, as the transcript has it
    item = JSON.parse(wanted.item)
    expect(step["operation"].all? { |name, value| item[name] == value }, item)
    @operations[step["ask"]] = Operation.new(wanted, Thread::Queue.new)
    @coalescer.add(@operations[step["ask"]])
  end

  def wanted_of(name, of, wait_ms)
    kind = of.delete("operation")
    if kind == "acquire"
      wanted = Wanted.new(resources: of["resources"] || [of["resource"]], limit: of["limit"],
                          shared: of["mode"] == "shared")
      body = wanted.body
      body["wait_ms"] = wait_ms if wait_ms.positive?
      return Send.new(http_method: "POST", headers: { "Idempotency-Key" => name }, body: body,
                      timeout_ms: 5000, wait_ms: wait_ms, scope: wanted.scope)
    end
    id = of.delete("id")
    Send.new(http_method: kind == "extend" ? "PUT" : "DELETE", path: "/locks/#{id}",
             headers: { "X-Lock-Token" => of.delete("token") }, body: of, timeout_ms: 5000,
             scope: Scope.new([id]))
  end

  def do_leaves(step)
    request = @departing.shift or raise "nothing leaves"
    @under_way << request
    expect(names(request) == step["leaves"], names(request))
    is_batch = step["batch"] || request.operations.size > 1
    expect((request.wanted.path == "/batch") == is_batch, request.wanted)
    expect(request.wanted.wait_ms == (step["wait_ms"] || 0), request.wanted)
  end

  def do_lands(step)
    request = under_way(step["lands"])
    @under_way.delete(request)
    body = step["results"] ? { "results" => step["results"].map { |of| result(of) } } : {}
    answer = Answer.new(step["answer"] == "lost" ? 0 : step["answer"], body,
                        is_repeated: step.fetch("stale", false))
    told = @coalescer.landed(request, answer).reject(&:has_left)
    told = told.to_h { |operation| [@operations.key(operation), operation.answer.status] }
    expect(told == step["told"], told)
  end

  def result(status)
    { "status" => status, status < 300 ? "grant" : "problem" => {} }
  end

  def do_overdue(step)
    @coalescer.ended(under_way(step["overdue"]))
  end

  # As the Dispatcher does.
  def do_gives_up(step)
    operation = @operations[step["gives_up"]]
    operation.has_left = true
    @coalescer.remove(operation) unless operation.request
  end
end

passed = failed = 0
Dir["#{ROOT}/tests/protocol/*.json"].sort.each do |file|
  content = JSON.parse(File.read(file))
  content["transcripts"].each do |transcript|
    steps = (content[transcript["begins"]] || []) + transcript["steps"]
    transcript["steps"] = steps.map do |step| # asks: the request of the file, to this replica
      next step unless step.key?("asks")

      content["request"].merge("server" => step["asks"]).merge(step.reject { |name, _| name == "asks" })
    end
    begin
      kind = transcript["talk"] == "together" ? Together : Player
      kind.new(transcript, content["grant"] || {}).play
      passed += 1
    rescue StandardError => e
      failed += 1
      puts "FAIL  #{File.basename(file)}: #{transcript['name']}: #{e.message}"
    end
  end
end
puts "#{passed} passed, #{failed} failed"
exit(failed.zero? && passed > 50 ? 0 : 1)
