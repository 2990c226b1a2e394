// Drives a turn with a client that oapi-codegen has generated. Prints what came of it as JSON.
//
//	go run . <address> <organization> <id of llmsim-script>
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"driver/api"
)

const agentRequest = `{
	"name": "Painter", "default_model_id": %q,
	"system_prompt": "` + "```" + `llmsim\n[{\"tool_calls\": [{\"name\": \"ask_user\", \"arguments\": {\"question\": \"Which colour?\"}}]}, {\"text\": \"Blue it is.\"}]\n` + "```" + `",
	"tools": [{"type": "client_side", "name": "ask_user", "description": "Asks the user.", "parameters": {"type": "object"}}]
}`

var ctx = context.Background()

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// parsed reads a body of a request from JSON.
func parsed[T any](text string) (body T) {
	check(json.Unmarshal([]byte(text), &body))
	return body
}

// eventOf returns the first event of a type, once it is there.
func eventOf[T any](client *api.ClientWithResponses, session string) T {
	for range 600 {
		list, err := client.ListEventsWithResponse(ctx, session, nil)
		check(err)
		for _, event := range list.JSON200.Data {
			value, err := event.ValueByDiscriminator()
			check(err)
			if found, is := value.(T); is {
				return found
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	panic("the event does not come")
}

func main() {
	address, organization, model := os.Args[1], os.Args[2], os.Args[3]
	client, err := api.NewClientWithResponses(address, api.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("X-Org-Id", organization)
		return nil
	}))
	check(err)
	agent, err := client.CreateAgentWithResponse(ctx, nil, parsed[api.CreateAgentRequest](fmt.Sprintf(agentRequest, model)))
	check(err)
	session, err := client.CreateSessionWithResponse(ctx, nil, api.CreateSessionRequest{AgentId: &agent.JSON201.Id})
	check(err)
	id := session.JSON201.Id
	_, err = client.CreateMessageWithResponse(ctx, id, nil, parsed[api.CreateMessageRequest](
		`{"message": {"content": [{"type": "text", "text": "Paint the door."}]}}`))
	check(err)
	call := eventOf[api.ToolCallRequestedEvent](client, id).Data.ToolCalls[0]
	_, err = client.SubmitToolResultsWithResponse(ctx, id, nil, api.SubmitToolResultsRequest{
		ToolResults: []api.ClientToolResult{{ToolCallId: call.Id, Result: map[string]string{"colour": "blue"}}},
	})
	check(err)
	completed := eventOf[api.TurnCompletedEvent](client, id)
	messages, err := client.ListMessagesWithResponse(ctx, id, nil)
	check(err)
	content := messages.JSON200.Data[len(messages.JSON200.Data)-1].Content
	text, err := content[len(content)-1].AsTextContentPart()
	check(err)
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"asked":      call.Arguments,
		"iterations": completed.Data.Iterations,
		"answer":     text.Text,
	}))
}
